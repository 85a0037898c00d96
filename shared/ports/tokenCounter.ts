/**
 * Counts the tokens of texts as the model's tokenizer does, or close to it for a model whose
 * tokenizer is not published.
 */
export interface TokenCounter {
  /** The most bytes of UTF-8 that one token stands for. */
  longestToken: number;
  /**
   * Tokens of the texts together; of no more texts than come to over `atMost`. Accounts take turns
   * where that is much to do. Errors: `overloaded`, `rate_limited` where it takes too long.
   */
  count(texts: readonly string[], accountId: string, atMost?: number): Promise<number>;
}
