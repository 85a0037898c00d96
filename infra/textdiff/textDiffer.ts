import { Worker } from 'node:worker_threads';
import { LIMITS } from '../../shared/limits.ts';
import type { DiffPart, TextDiffer, TextPair } from '../../shared/replays/comparison/textDiffer.ts';
import { createWorkerClient, WorkerTimeout } from '../../shared/lib/concurrency/workerClient.ts';

const { diffMs, diffWaitMs, diffHeapMb } = LIMITS.replays;

/**
 * Compares with jsdiff in worker threads. The library has a time limit, except while it splits words;
 * there the limit of the thread applies.
 */
export function createTextDiffer(): TextDiffer & AsyncDisposable {
  const threads = createWorkerClient<TextPair, DiffPart[] | undefined>({
    name: 'text_comparisons',
    start: () =>
      new Worker(new URL('./diffWorker.ts', import.meta.url), {
        name: 'diffs',
        resourceLimits: { maxOldGenerationSizeMb: diffHeapMb, maxYoungGenerationSizeMb: 4 },
      }),
    ...LIMITS.slowWork,
    withinMs: 2 * diffMs,
    waitMs: diffWaitMs,
  });
  return {
    diffOf: (texts, accountId) =>
      threads.request(texts, accountId).catch((error: unknown) => {
        if (error instanceof WorkerTimeout) return undefined;
        throw error;
      }),
    [Symbol.asyncDispose]: () => threads[Symbol.asyncDispose](),
  };
}
