import type { AdmissionControl } from '../../../shared/runs/queueing/admissionControl.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';

const LOOK_MS = 5;

/** How fast turns are replayed, of all replays of a process. */
export interface ReplayThrottle {
  /**
   * Waits until a turn may begin; gives what is to be called when it has ended. Beside runs of
   * clients, and shortly after them, one begins in so long a time. Errors: the signal's reason.
   */
  begin(signal: AbortSignal): Promise<() => void>;
}

/** `runs` counts the turns that are replayed with those of clients. */
export function createReplayThrottle(
  runs: Pick<AdmissionControl, 'activeCount' | 'waitingCount'>,
): ReplayThrottle {
  const { giveWayMs, quietMs } = LIMITS.replays;
  let own = 0;
  let begunAt = -Infinity;
  let clientsAt = -Infinity;
  return {
    async begin(signal) {
      for (;;) {
        const now = performance.now();
        if (runs.activeCount() + runs.waitingCount() > own) clientsAt = now;
        if (now - clientsAt >= quietMs || now - begunAt >= giveWayMs) {
          begunAt = now;
          own += 1;
          return () => void (own -= 1);
        }
        await sleep(LOOK_MS, signal);
      }
    },
  };
}
