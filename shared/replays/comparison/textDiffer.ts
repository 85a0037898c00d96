/** A piece of two texts: of both, only of the first (removed), or only of the second (added). */
export interface DiffPart {
  op: 'same' | 'removed' | 'added';
  text: string;
}

/** Two outputs: the one that is compared, and the one that it became. */
export interface TextPair {
  recorded: string;
  replayed: string;
}

/** Finds what differs between texts that models wrote: they may hold nothing up, whatever they are. */
export interface TextDiffer {
  /**
   * What differs, word by word; undefined where too much does to be found in time. Errors:
   * `overloaded`, `rate_limited`.
   */
  diffOf(texts: TextPair, accountId: string): Promise<DiffPart[] | undefined>;
}
