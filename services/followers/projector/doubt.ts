import type { ProjectorThread } from './startThread.ts';

interface Known {
  /** Why the read models are being rebuilt. */
  healing?: string | undefined;
  /** Why the log is not followed. */
  logChanged?: string | undefined;
}

/** Why read models can't be trusted, for people; undefined where they can. */
export function doubtOf({ healing, logChanged }: Known): string | undefined {
  if (logChanged !== undefined) return `The read models do not follow the log. ${logChanged}`;
  return healing && `The read models are being built anew. ${healing}`;
}

/** One sentence on why turns are not found by their words; undefined where they are. */
export const searchReason = (reason: string | undefined): string | undefined =>
  reason && `Turns can't be indexed, and are not found by their words: ${reason}.`;

/** One sentence on why the read models don't follow the log; undefined while they do. */
export function lateness({ trouble }: Pick<ProjectorThread, 'trouble'>): string | undefined {
  const { sinceMs, reason } = trouble() ?? {};
  return sinceMs === undefined
    ? undefined
    : `The read models can't be brought up to date, since ${Math.ceil(sinceMs / 1000)} s: ${reason}.`;
}
