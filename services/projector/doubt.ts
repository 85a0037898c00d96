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
