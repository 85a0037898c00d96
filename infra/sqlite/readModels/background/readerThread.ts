import { Worker } from 'node:worker_threads';
import { LIMITS } from '../../../../shared/limits.ts';
import {
  createWorkerClient,
  WorkerTimeout,
} from '../../../../shared/lib/concurrency/workerClient.ts';
import {
  measureProcessorTime,
  type TimedAnswer,
} from '../../../../shared/lib/time/processorTime.ts';
import { readModelsUnavailable } from '../failures.ts';
import type { GenerationReader } from '../generationReader.ts';
import { readRows, type BoundedQuery, type SqliteRow } from '../statements.ts';

/** A query and the generation that it reads. */
export interface ReaderQuestion extends BoundedQuery {
  folder: string;
  generation: number;
}

export interface ReaderThread extends AsyncDisposable {
  /**
   * The rows of a query, and the time that it took without waiting; accounts take turns. Rejects with
   * `store_unavailable`, `rate_limited`, `overloaded`.
   */
  read(query: BoundedQuery, accountId: string): Promise<TimedAnswer<SqliteRow[]>>;
}

const { answerMs, waitMs, heapMb } = LIMITS.sessionList;
/** Heap of a thread for young objects. The default takes several times as much. */
const YOUNG_MB = 12;
const { threads, slowMs, slowForMs } = LIMITS.slowWork;

/**
 * Runs queries of milliseconds in threads, each with its own connection. A query begins after it
 * was sent, so it sees every write that the caller has seen. The caller's own connection answers where
 * the thread can't open the generation, because a rebuild has just deleted its file.
 */
export function createReaderThread(folder: string, current: () => GenerationReader): ReaderThread {
  const client = createWorkerClient<ReaderQuestion, TimedAnswer<SqliteRow[]> | undefined>({
    name: 'session_queries',
    start: () =>
      new Worker(new URL('./readerWorker.ts', import.meta.url), {
        name: 'queries',
        resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: YOUNG_MB },
      }),
    threads,
    withinMs: answerMs,
    waitMs,
    slowMs,
    slowForMs,
  });
  return {
    async read(query, accountId) {
      const { generation } = current();
      try {
        const timed = await client.request({ folder, generation, ...query }, accountId);
        return timed ?? measureProcessorTime(() => readRows(current(), query));
      } catch (error) {
        throw error instanceof WorkerTimeout ? readModelsUnavailable(error) : error;
      }
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}
