/** What is answered where there was not time enough to find out. */
export const TOO_SLOW = 'takes too long to check';

/**
 * Checks texts against JSON Schemas (2020-12) that clients wrote: neither may hold anything up,
 * whatever it is. A schema is JSON text. What is answered is the rest of a sentence, without a word
 * of the schema or the text.
 */
export interface SchemaChecker {
  /** Why a schema can't be used; undefined where it can. Errors: `overloaded`, `rate_limited`. */
  flawOf(schema: string, accountId: string): Promise<string | undefined>;
  /**
   * Why a text is not JSON that fits the schema; undefined where it is. Errors: `overloaded`,
   * `rate_limited`.
   */
  misfitOf(schema: string, text: string, accountId: string): Promise<string | undefined>;
}
