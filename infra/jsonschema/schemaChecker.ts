import { Worker } from 'node:worker_threads';
import { LIMITS } from '../../shared/limits.ts';
import { TOO_SLOW, type SchemaChecker } from '../../shared/ports/schemaChecker.ts';
import { createWorkerClient, WorkerTimeout } from '../../shared/lib/concurrency/workerClient.ts';
import type { Question } from './check.ts';

const { checkMs, waitMs, heapMb } = LIMITS.responseFormat;

/**
 * Checks with ajv in a worker thread, which is terminated after the time limit: a pattern, or a few
 * mutual references, can take forever.
 */
export function createSchemaChecker(): SchemaChecker & AsyncDisposable {
  const thread = createWorkerClient<Question, string | undefined>({
    name: 'schema_checks',
    start: () =>
      new Worker(new URL('./checkWorker.ts', import.meta.url), {
        name: 'schemas',
        resourceLimits: { maxOldGenerationSizeMb: heapMb },
      }),
    withinMs: checkMs,
    waitMs,
  });
  const ask = (question: Question, accountId: string): Promise<string | undefined> =>
    thread.request(question, accountId).catch((error: unknown) => {
      if (error instanceof WorkerTimeout) return TOO_SLOW;
      throw error;
    });

  return {
    flawOf: (schema, accountId) => ask({ schema }, accountId),
    misfitOf: (schema, text, accountId) => ask({ schema, text }, accountId),
    [Symbol.asyncDispose]: () => thread[Symbol.asyncDispose](),
  };
}
