/** Counts tokens like the model's tokenizer, or approximately when that is not published. */
export interface TokenCounter {
  /** The most UTF-8 bytes of one token. */
  longestToken: number;
  /**
   * The tokens of all texts; counting stops once the sum exceeds `atMost`. Accounts take turns on
   * large inputs. Errors: `overloaded`, `rate_limited` when it takes too long.
   */
  count(texts: readonly string[], accountId: string, atMost?: number): Promise<number>;
}
