/**
 * Counts the tokens of a text as the model's tokenizer does, or close to it for a model whose
 * tokenizer is not published.
 */
export interface TokenCounter {
  count(text: string): Promise<number>;
}
