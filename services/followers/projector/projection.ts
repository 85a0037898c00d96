import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { LagTracker } from '../../../shared/eventlog/identity/lag.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';
import type { ParkedStream, ProjectionStore } from '../../../shared/ports/readModels.ts';
import type { Progress } from '../../../shared/projections/progress.ts';

/** The part of pino's logger that the projector uses. */
export type ProjectorLogger = Record<
  'info' | 'warn' | 'error',
  (fields: object, message: string) => void
>;

/** A batch that was applied, and the progress of the projection after it. */
export interface AppliedBatch extends Progress {
  /** Events applied since the projection started. */
  events: number;
  /** The streams parked by this batch. */
  parked: ParkedStream[];
}

/** The pause in which events are gathered for the next batch. */
export interface Gathering {
  /** Resolves after the pause, once a batch is requested, or when the signal aborts. */
  pause(signal: AbortSignal): Promise<void>;
  /** Ends the pause, or omits the next one: a batch may have been read just before the request. */
  requestBatch(): void;
}

/** Creates a pause of this many milliseconds. */
export function createGathering(ms: number): Gathering {
  let isRequested = false;
  let end = new AbortController();
  return {
    async pause(signal) {
      if (!isRequested)
        await sleepUntilAborted(ms, { signal: AbortSignal.any([signal, end.signal]) });
      isRequested = false;
      end = new AbortController();
    },
    requestBatch() {
      isRequested = true;
      end.abort();
    },
  };
}

export interface Projection {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  store: ProjectionStore;
  signal: AbortSignal;
  onProgress: (batch: AppliedBatch) => void;
  /** Measures how far the projection is behind. */
  lag?: Pick<LagTracker, 'startBatch' | 'finishBatch'>;
  /** Pauses after a batch that keeps known rows, to gather larger batches; no pause by default. */
  gathering?: Pick<Gathering, 'pause'>;
  /**
   * Called with one sentence on why the log is not followed, and with undefined once it is. A rejection
   * is a failure of the projection.
   */
  onLogChanged?: ((reason: string | undefined) => void | Promise<void>) | undefined;
  /** The reason reported before this projection began; it is not logged again. */
  reportedReason?: string | undefined;
  /** Called with the reason of each failure; the next progress ends the trouble. */
  onTrouble?: (reason: string) => void;
  logger: ProjectorLogger;
}
