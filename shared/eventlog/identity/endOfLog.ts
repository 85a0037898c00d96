import type { EventLog, Position } from '../../ports/eventStore.ts';
import { resolvesWithin } from '../../lib/time/resolvesWithin.ts';

/** What an estimate or a health check may cost. */
const LIMIT_MS = 100;

/** The end of the log for estimates: what a slow store said last is good enough. */
export interface LogEndEstimate {
  /**
   * Asks, for 100 ms at the most unless told otherwise; undefined while the log is empty, and until
   * the store has answered once.
   */
  latest(): Promise<Position | undefined>;
}

/** At most one question is on its way at a time, however often it is asked for. */
export function createLogEndEstimate(
  log: Pick<EventLog, 'head'>,
  limitMs = LIMIT_MS,
): LogEndEstimate {
  let known: Position | undefined;
  let asking: Promise<void> | undefined;

  async function ask(): Promise<void> {
    try {
      known = await log.head();
    } catch {
      // Whoever reads the log is told why it can't be read.
    } finally {
      asking = undefined;
    }
  }

  return {
    async latest() {
      await resolvesWithin((asking ??= ask()), limitMs);
      return known;
    },
  };
}
