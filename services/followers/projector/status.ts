import type { AppliedBatch, ProjectorLogger } from './projection.ts';
import { logParked, progressLogger, type LoggedProgress } from './reports.ts';

/** A change of a projector's state, as plain data that threads can exchange. */
export type ProjectorReport =
  /** Why the read models, which can't be trusted, are rebuilt; undefined once they are. */
  | { type: 'healing'; reason: string | undefined }
  /** Why the log is not followed; undefined once it is. */
  | { type: 'log_changed'; reason: string | undefined }
  /** Why nothing can be applied; the next progress ends the trouble. */
  | { type: 'trouble'; reason: string }
  /** Half a sentence on why turns can't be indexed; undefined once they can. */
  | { type: 'index_trouble'; reason: string | undefined };

/** The latest reports of a projector. */
export interface ProjectorStatus {
  /** Returns true while it can apply events and has applied everything that it read. */
  caughtUp(): boolean;
  /** For how long and why (half a sentence) nothing could be applied; undefined while it can. */
  trouble(): { sinceMs: number; reason: string } | undefined;
  /** Why the read models are being rebuilt; undefined while they aren't. */
  healing(): string | undefined;
  /** Why the log is not followed; undefined while it is. */
  logChanged(): string | undefined;
  /** Half a sentence on why turns can't be indexed; undefined while they can. */
  notIndexed(): string | undefined;
}

interface StatusKeeper extends ProjectorStatus {
  record(report: ProjectorReport): void;
  onProgress(batch: Pick<AppliedBatch, 'parked'> & LoggedProgress): void;
  /** Logs the progress of a rebuild. */
  onHealingProgress(progress: { percent: number; events: number }): void;
}

/** Keeps the reports of a projector, of this thread or another one, and logs its progress. */
export function createProjectorStatus(logger: ProjectorLogger): StatusKeeper {
  const logProgress = progressLogger(logger);
  const reasons: Partial<Record<'healing' | 'log_changed' | 'index_trouble', string | undefined>> =
    {};
  let caughtUp = false;
  /** `since` in milliseconds of `performance.now()`. */
  let trouble: { since: number; reason: string } | undefined;

  return {
    record(report) {
      if (report.type === 'trouble') {
        caughtUp = false;
        trouble = { since: trouble?.since ?? performance.now(), reason: report.reason };
        return;
      }
      reasons[report.type] = report.reason;
      if (report.type === 'healing') reasons.log_changed = undefined;
      if (report.type === 'log_changed') caughtUp &&= report.reason === undefined;
    },
    onProgress(batch) {
      if (trouble) logger.info({}, 'The read models follow the log again');
      trouble = undefined;
      ({ caughtUp } = batch);
      if (caughtUp) reasons.healing = undefined;
      logParked(logger, batch.parked);
      logProgress(batch);
    },
    onHealingProgress: ({ percent, events }) => logProgress({ caughtUp: false, percent, events }),
    caughtUp: () => caughtUp,
    trouble: () =>
      trouble && {
        sinceMs: Math.round(performance.now() - trouble.since),
        reason: trouble.reason,
      },
    healing: () => reasons.healing,
    logChanged: () => reasons.log_changed,
    notIndexed: () => reasons.index_trouble,
  };
}

/** One sentence on why read models can't be trusted; undefined while they can. */
export const distrustReason = (healing: string | undefined): string | undefined =>
  healing && `The read models are being built anew. ${healing}`;

/** One sentence on why nothing can be written, for the reason that the log is another one. */
export const changedLogReason = (logChanged: string | undefined): string | undefined =>
  logChanged && `The read models do not follow the log. ${logChanged}`;

/** One sentence on why search does not find turns by their words; undefined while it does. */
export const searchReason = (reason: string | undefined): string | undefined =>
  reason && `Turns can't be indexed, and are not found by their words: ${reason}.`;

/** One sentence on why the read models don't follow the log; undefined while they do. */
export function lateReason({ trouble }: Pick<ProjectorStatus, 'trouble'>): string | undefined {
  const { sinceMs, reason } = trouble() ?? {};
  return sinceMs === undefined
    ? undefined
    : `The read models can't be brought up to date, since ${Math.ceil(sinceMs / 1000)} s: ${reason}.`;
}
