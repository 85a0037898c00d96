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

export interface Projection {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  store: ProjectionStore;
  signal: AbortSignal;
  onProgress: (batch: AppliedBatch) => void;
  /** Measures how far the projection is behind. */
  lag?: Pick<LagTracker, 'startBatch' | 'finishBatch'>;
  /** The pause after a batch with session events only, to gather larger batches; none by default. */
  gatherMs?: number;
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
