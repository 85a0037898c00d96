import type { Clock } from '../../shared/ports/clock.ts';
import type { EventLog, Position } from '../../shared/ports/eventStore.ts';
import type { ActiveProjectionStore } from '../../shared/ports/readModels.ts';
import type { ProjectorHealth } from '../../shared/queries/health.ts';
import { measureLag } from './measureLag.ts';
import { projectWhenActive, type ProjectorState } from './projectWhenActive.ts';
import { logParked, progressLines } from './reports.ts';
import type { ProjectorLogger } from './runProjection.ts';

export interface RunningProjector {
  /** Errors: `store_unavailable`. */
  health(): Promise<ProjectorHealth>;
  /** Lets the batch at work finish, and lets another projector take over at once. */
  close(): Promise<void>;
}

interface Parts {
  log: Pick<EventLog, 'head' | 'subscribe'>;
  becomeActive: (signal: AbortSignal) => Promise<ActiveProjectionStore | undefined>;
  clock: Clock;
  logger: ProjectorLogger;
}

/** Starts projecting, or standing by, in the background. It needs nobody's care: failures are logged and tried again for ever. */
export function startProjector({ log, becomeActive, clock, logger }: Parts): RunningProjector {
  const closing = new AbortController();
  const logProgress = progressLines(logger);
  let state: ProjectorState = 'standing_by';
  /** Undefined until the active projector has told where it is. */
  let reached: { position: Position | undefined } | undefined;
  const run = projectWhenActive({
    log,
    logger,
    becomeActive,
    signal: closing.signal,
    onState(next) {
      state = next;
      reached = undefined;
    },
    onProgress({ position, caughtUp, percent, parked }) {
      reached = { position };
      logParked(logger, parked);
      logProgress({ caughtUp, percent });
    },
  });
  return {
    health: async () => ({ state, ...(reached ? await measureLag({ log, clock }, reached.position) : { lag_events: null, lag_ms: null }) }),
    async close() {
      closing.abort();
      await run;
    },
  };
}
