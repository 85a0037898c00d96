import type { AdmissionControl } from '../../../shared/runs/queueing/admissionControl.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';

const POLL_MS = 5;

/** Limits how fast the replays of a process begin turns. */
export interface ReplayThrottle {
  /**
   * Waits until a turn may begin, and returns the function to call when it has ended. During runs of
   * clients, and shortly after them, turns begin at a limited rate.
   */
  begin(signal: AbortSignal): Promise<() => void>;
}

/** `runs` counts replayed turns together with those of clients. */
export function createReplayThrottle(
  runs: Pick<AdmissionControl, 'activeCount' | 'waitingCount'>,
): ReplayThrottle {
  const { turnPauseMs, quietMs } = LIMITS.replays;
  let replayedTurns = 0;
  let lastBeginAt = -Infinity;
  let clientRunAt = -Infinity;
  return {
    async begin(signal) {
      for (;;) {
        const now = performance.now();
        if (runs.activeCount() + runs.waitingCount() > replayedTurns) clientRunAt = now;
        if (now - clientRunAt >= quietMs || now - lastBeginAt >= turnPauseMs) {
          lastBeginAt = now;
          replayedTurns += 1;
          return () => void (replayedTurns -= 1);
        }
        await sleep(POLL_MS, signal);
      }
    },
  };
}
