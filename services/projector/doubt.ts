interface Doubtful {
  /** Why the read models are being rebuilt. */
  healing: () => string | undefined;
  /** Why the log is not followed. */
  logChanged: () => string | undefined;
}

/** Why read models can't be trusted, for people; undefined where they can. */
export function doubtOf({ healing, logChanged }: Doubtful): string | undefined {
  const [changed, why] = [logChanged(), healing()];
  if (changed !== undefined) return `The read models do not follow the log. ${changed}`;
  return why && `The read models are being built anew. ${why}`;
}
