import { createFairLine } from '../../shared/fairLine.ts';
import { LIMITS } from '../../shared/limits.ts';
import { TOO_SLOW, type SchemaChecker } from '../../shared/ports/schemaChecker.ts';
import type { Question } from './check.ts';
import { createCheckThread } from './checkThread.ts';

/** The thread does one thing after the other. */
const ONE = { places: 1, bytes: Infinity };

/**
 * Checks with ajv in a thread of its own, which is ended where a schema or a text takes too long:
 * a pattern, or few references to one another, can take for ever. The accounts take turns.
 */
export function createSchemaChecker(): SchemaChecker & AsyncDisposable {
  const thread = createCheckThread();
  const line = createFairLine(ONE);
  const closing = new AbortController();

  async function ask(question: Question, account_id: string): Promise<string | undefined> {
    const place = await line.enter(
      { account_id, bytes: 0 },
      { waitMs: LIMITS.responseFormat.waitMs, signal: closing.signal },
    );
    try {
      return await thread.ask(question);
    } catch {
      return TOO_SLOW;
    } finally {
      place.leave();
    }
  }

  return {
    flawOf: (schema, accountId) => ask({ schema }, accountId),
    misfitOf: (schema, text, accountId) => ask({ schema, text }, accountId),
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('The checker of schemas is closed.'));
      await thread.close();
    },
  };
}
