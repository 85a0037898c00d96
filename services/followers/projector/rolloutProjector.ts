import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { ProjectorLogger } from './projection.ts';

const POLL_MS = 1000;

interface Closable {
  close(): Promise<void>;
}

interface RolloutProjectorOptions {
  /** Returns true while a projector of another release is active. Throws `store_unavailable`. */
  isNeeded: () => Promise<boolean>;
  /** Starts a projector of this release, which stands by while another one is active. */
  start: () => Closable;
  logger: ProjectorLogger;
}

/**
 * Keeps the read models of a process that only reads up to date during a rollout, when no projector of
 * its release may be running yet, or any more. While projectors of another release are active, it runs
 * a standby projector of this release.
 */
export function startRolloutProjector({
  isNeeded,
  start,
  logger,
}: RolloutProjectorOptions): Closable {
  const closing = new AbortController();
  const { signal } = closing;
  let projector: Closable | undefined;

  async function startOrStop(): Promise<void> {
    // An unavailable database changes nothing.
    const isWanted = await isNeeded().catch(() => projector !== undefined);
    if (isWanted && !projector) {
      logger.info(
        {},
        'Projectors of another release are active: this process runs a standby projector of its own release',
      );
      projector = start();
    } else if (!isWanted && projector) {
      logger.info(
        {},
        'No projector of another release is active any more: this process stops its standby projector',
      );
      await projector.close();
      projector = undefined;
    }
  }

  async function pollUntilClosed(): Promise<void> {
    while (!signal.aborted) {
      await startOrStop();
      await sleepUntilAborted(POLL_MS, { signal, ref: false });
    }
    await projector?.close();
  }

  const polling = pollUntilClosed();
  return {
    async close() {
      closing.abort();
      await polling;
    },
  };
}
