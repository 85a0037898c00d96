import type { LagTracker } from '../../../shared/eventlog/identity/lag.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';
import type { ParkedStream, ProjectionStore } from '../../../shared/ports/readModels.ts';
import type { Progress } from '../../../shared/projections/progress.ts';

/** What the projector needs of a logger; pino's fits. */
export type ProjectorLogger = Record<
  'info' | 'warn' | 'error',
  (fields: object, message: string) => void
>;

/** What was just applied, and where that leaves the projection. */
export interface AppliedBatch extends Progress {
  /** Events applied since the projection started. */
  events: number;
  /** The streams that this batch parked. */
  parked: ParkedStream[];
}

export interface Projection {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  store: ProjectionStore;
  signal: AbortSignal;
  onProgress: (batch: AppliedBatch) => void;
  /** Measures how far the projection is behind. */
  lag?: Pick<LagTracker, 'startBatch' | 'finishBatch'>;
  /** The pause after what came of sessions alone, so that more comes together; none by default. */
  gatherMs?: number;
  /**
   * Told one sentence on why the log is not followed; undefined once it is. What it rejects with is a
   * failure of the projection.
   */
  onLogChanged?: ((reason: string | undefined) => void | Promise<void>) | undefined;
  /** What was said of that before this projection began, and is not said again. */
  reportedReason?: string | undefined;
  /** Told why the projection failed, each time; progress ends that. */
  onTrouble?: (reason: string) => void;
  logger: ProjectorLogger;
}
