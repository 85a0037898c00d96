import type { EventLog, Position } from '../../ports/eventStore.ts';
import { resolvesWithin } from '../../lib/time/resolvesWithin.ts';

/** The time budget for an estimate or a health check. */
const LIMIT_MS = 100;

/** An estimate of the end of the log: a slow store's last answer is good enough. */
export interface LogEndEstimate {
  /**
   * Asks the log, for at most 100 ms by default. Undefined while the log is empty and until the
   * store has answered once.
   */
  latest(): Promise<Position | undefined>;
}

/** Concurrent callers share one pending request. */
export function createLogEndEstimate(
  log: Pick<EventLog, 'head'>,
  limitMs = LIMIT_MS,
): LogEndEstimate {
  let latestEnd: Position | undefined;
  let pendingRequest: Promise<void> | undefined;

  async function requestEnd(): Promise<void> {
    try {
      latestEnd = await log.head();
    } catch {
      // Readers of the log report why it can't be read.
    } finally {
      pendingRequest = undefined;
    }
  }

  return {
    async latest() {
      await resolvesWithin((pendingRequest ??= requestEnd()), limitMs);
      return latestEnd;
    },
  };
}
