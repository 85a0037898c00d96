import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { ProjectorLogger } from './projection.ts';

/** How often it looks whether it is needed. */
const LOOK_MS = 1000;

interface Closable {
  close(): Promise<void>;
}

interface StandIn {
  /** Whether a projector of another release is at work. Errors: `store_unavailable`. */
  needed: () => Promise<boolean>;
  /** Starts a projector that stands by for those of this release. */
  start: () => Closable;
  logger: ProjectorLogger;
}

/**
 * For a process that only reads: while a release is rolled out, in whatever order, the projectors
 * of this process's release may not be there yet or no more. As long as those of another release
 * are at work, it stands by for its own, so that its read models go on as long as it reads them.
 */
export function startStandInProjector({ needed, start, logger }: StandIn): Closable {
  const closing = new AbortController();
  const { signal } = closing;
  let projector: Closable | undefined;

  async function look(): Promise<void> {
    // A database that is away changes nothing.
    const wanted = await needed().catch(() => projector !== undefined);
    if (wanted && !projector) {
      logger.info(
        {},
        'Projectors of another release are at work: this process stands by for its own',
      );
      projector = start();
    } else if (!wanted && projector) {
      logger.info(
        {},
        'No projector of another release is at work any more: those of this one go on',
      );
      await projector.close();
      projector = undefined;
    }
  }

  async function lookOnAndOn(): Promise<void> {
    while (!signal.aborted) {
      await look();
      await sleepUntilAborted(LOOK_MS, { signal, ref: false });
    }
    await projector?.close();
  }

  const looking = lookOnAndOn();
  return {
    async close() {
      closing.abort();
      await looking;
    },
  };
}
