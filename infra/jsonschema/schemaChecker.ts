import { Worker } from 'node:worker_threads';
import { LIMITS } from '../../shared/limits.ts';
import {
  TOO_SLOW,
  type SchemaChecker,
  type ToolSchemaChecker,
} from '../../shared/ports/schemaChecker.ts';
import { createWorkerClient, WorkerTimeout } from '../../shared/lib/concurrency/workerClient.ts';
import type { SchemaQuestion } from './check.ts';

const { checkMs, waitMs, heapMb } = LIMITS.responseFormat;

/**
 * Checks with ajv in worker threads, each of which is terminated after the time limit: a pattern, or a few
 * mutual references, may never end.
 */
export function createSchemaChecker(): SchemaChecker & ToolSchemaChecker & AsyncDisposable {
  const threads = createWorkerClient<SchemaQuestion, string | undefined>({
    name: 'schema_checks',
    start: () =>
      new Worker(new URL('./checkWorker.ts', import.meta.url), {
        name: 'schemas',
        resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: 12 },
      }),
    ...LIMITS.slowWork,
    withinMs: checkMs,
    waitMs,
  });
  const ask = (question: SchemaQuestion, accountId: string): Promise<string | undefined> =>
    threads.request(question, accountId).catch((error: unknown) => {
      if (error instanceof WorkerTimeout) return TOO_SLOW;
      throw error;
    });

  return {
    flawOf: (schema, accountId) => ask({ schema }, accountId),
    misfitOf: (schema, text, accountId) => ask({ schema, text }, accountId),
    toolFlawOf: (schema, owner) => ask({ schema, isTool: true }, owner),
    async argumentsProblemOf(schema, text, accountId) {
      const problem = await ask({ schema, text, isTool: true }, accountId);
      return problem === TOO_SLOW ? 'they take too long to be checked' : problem;
    },
    [Symbol.asyncDispose]: () => threads[Symbol.asyncDispose](),
  };
}
