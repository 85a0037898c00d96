import { once, type EventEmitter } from 'node:events';
import { createFairSemaphore } from './fairSemaphore.ts';
import { resolvesWithin } from '../time/resolvesWithin.ts';

/** A `Worker` of `node:worker_threads`. */
interface Thread extends EventEmitter {
  postMessage(question: unknown): void;
  terminate(): Promise<unknown>;
  unref(): void;
}

interface WorkerOptions {
  /** Names the thread in the metrics of the process. */
  name: string;
  /**
   * Starts a thread with a memory limit. It sends `ready` first, and then one answer per message,
   * in order.
   */
  start: () => Thread;
  /** The time limit of one answer. */
  withinMs: number;
  /** The longest wait for earlier requests. */
  waitMs: number;
}

export interface WorkerClient<Question, Answer> extends AsyncDisposable {
  /**
   * Sends a request when its turn comes; accounts take turns. Rejects with WorkerTimeout, or with
   * `overloaded` or `rate_limited` after too long a wait.
   */
  request(question: Question, accountId: string): Promise<Answer>;
}

/** An answer took too long or exceeded the memory limit. */
export class WorkerTimeout extends Error {}

/** A busy machine starts threads slowly; the request does not cause that. */
const START_MS = 15_000;
/** The thread handles one request at a time. */
const ONE = { permits: 1, bytes: Infinity };

async function answerOf(worker: Thread, withinMs: number): Promise<unknown> {
  const waitEnded = new AbortController();
  const answered = once(worker, 'message', waitEnded).then(([message]) => message as unknown);
  const exited = once(worker, 'exit', waitEnded).then(() =>
    Promise.reject(new WorkerTimeout('The thread has ended.')),
  );
  const answer = Promise.race([answered, exited]);
  try {
    if (await resolvesWithin(answer, withinMs)) return await answer;
    throw new WorkerTimeout('The thread took too long.');
  } finally {
    waitEnded.abort();
    await Promise.allSettled([answered, exited]);
  }
}

/**
 * A worker thread for untrusted input that may take unlimited time or memory. It starts with the
 * first request; a request that exceeds the limits terminates it, and the next one starts another.
 */
export function createWorkerClient<Question, Answer>(
  program: WorkerOptions,
): WorkerClient<Question, Answer> {
  const semaphore = createFairSemaphore(program.name, ONE);
  const closing = new AbortController();
  let running: Thread | undefined;

  async function start(): Promise<Thread> {
    const worker = program.start();
    worker.unref();
    // Waiting callers observe `exit`; an unhandled `error` event would end the process.
    worker.on('error', () => undefined);
    worker.on('exit', () => {
      if (running === worker) running = undefined;
    });
    running = worker;
    try {
      await answerOf(worker, START_MS);
    } catch (error) {
      // Later messages of this thread must not be taken for answers.
      await worker.terminate();
      throw error;
    }
    return worker;
  }

  async function answer(question: Question): Promise<Answer> {
    const worker = running ?? (await start());
    const answered = answerOf(worker, program.withinMs);
    worker.postMessage(question);
    try {
      return (await answered) as Answer;
    } catch (error) {
      await worker.terminate();
      throw error;
    }
  }

  return {
    async request(question, account_id) {
      const bounds = { waitMs: program.waitMs, signal: closing.signal };
      const permit = await semaphore.acquire({ account_id, bytes: 0 }, bounds);
      try {
        return await answer(question);
      } finally {
        permit.release();
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('The thread is closed.'));
      await running?.terminate();
    },
  };
}
