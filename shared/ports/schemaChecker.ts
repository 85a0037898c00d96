/** The result when checking takes too long. */
export const TOO_SLOW = 'takes too long to check';

/**
 * Checks texts against JSON Schemas (2020-12). Both come from clients, and neither may block the
 * service. A schema is JSON text. Results are phrases that complete a sentence and quote neither
 * schema nor text.
 */
export interface SchemaChecker {
  /** Why a schema is unusable; undefined when it is valid. Errors: `overloaded`, `rate_limited`. */
  flawOf(schema: string, accountId: string): Promise<string | undefined>;
  /**
   * Why a text is not JSON that matches the schema; undefined when it is. Errors: `overloaded`,
   * `rate_limited`.
   */
  misfitOf(schema: string, text: string, accountId: string): Promise<string | undefined>;
}

/** Checks the schemas of tools and their arguments, within the same bounds. */
export interface ToolSchemaChecker {
  /**
   * Why a tool's schema is unusable; undefined when it is usable. The owner takes turns like an
   * account. Errors: `overloaded`, `rate_limited`.
   */
  toolFlawOf(schema: string, owner: string): Promise<string | undefined>;
  /**
   * The problems of arguments, as JSON, for the model; undefined when they match the schema.
   * Errors: `overloaded`, `rate_limited`.
   */
  argumentsProblemOf(schema: string, text: string, accountId: string): Promise<string | undefined>;
}
