/**
 * A piece of two texts: common to both, removed (only in the first), or added (only in the second).
 */
export interface DiffPart {
  op: 'same' | 'removed' | 'added';
  text: string;
}

/** A recorded output and its replayed counterpart. */
export interface TextPair {
  recorded: string;
  replayed: string;
}

/** Compares texts that models wrote. No text may block other work. */
export interface TextDiffer {
  /**
   * The word-by-word differences; undefined if there are too many to find within the time limit.
   * Errors: `overloaded`, `rate_limited`.
   */
  diffOf(texts: TextPair, accountId: string): Promise<DiffPart[] | undefined>;
}
