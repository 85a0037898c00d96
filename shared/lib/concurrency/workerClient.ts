import { once, type EventEmitter } from 'node:events';
import { createFairSemaphore } from './fairSemaphore.ts';
import { resolvesWithin } from '../time/resolvesWithin.ts';

/** A `Worker` of `node:worker_threads`. */
interface Thread extends EventEmitter {
  postMessage(question: unknown): void;
  terminate(): Promise<unknown>;
  unref(): void;
}

/** What runs in the thread. */
interface WorkerOptions {
  /** Of bounded memory. It says `ready` first, and then answers each message with one, in order. */
  start: () => Thread;
  /** For one answer. */
  withinMs: number;
  /** For the questions of others that come first. */
  waitMs: number;
}

export interface WorkerClient<Question, Answer> extends AsyncDisposable {
  /**
   * Asks when those who came before have their answers; the accounts take turns. Errors: GaveUp;
   * `overloaded`, `rate_limited` for one who waited too long.
   */
  request(question: Question, accountId: string): Promise<Answer>;
}

/** An answer took too long, or more memory than there is. */
export class WorkerTimeout extends Error {}

/** A busy machine takes its time to start a thread; this is not the question's doing. */
const START_MS = 15_000;
/** The thread does one thing after the other. */
const ONE = { permits: 1, bytes: Infinity };

async function answerOf(worker: Thread, withinMs: number): Promise<unknown> {
  const over = new AbortController();
  const answered = once(worker, 'message', over).then(([said]) => said as unknown);
  const exited = once(worker, 'exit', over).then(() =>
    Promise.reject(new WorkerTimeout('The thread has ended.')),
  );
  const answer = Promise.race([answered, exited]);
  try {
    if (await resolvesWithin(answer, withinMs)) return await answer;
    throw new WorkerTimeout('The thread took too long.');
  } finally {
    over.abort();
    await Promise.allSettled([answered, exited]);
  }
}

/**
 * A thread for work on what others wrote, which may take for ever or all the memory there is; it is
 * started when it is first asked. What is over its bounds ends it; the next question starts another.
 */
export function createWorkerClient<Question, Answer>(
  program: WorkerOptions,
): WorkerClient<Question, Answer> {
  const line = createFairSemaphore(ONE);
  const closing = new AbortController();
  let running: Thread | undefined;

  async function start(): Promise<Thread> {
    const worker = program.start();
    worker.unref();
    // Whoever waits hears that it has ended; nobody may be waiting.
    worker.on('error', () => undefined);
    worker.on('exit', () => {
      if (running === worker) running = undefined;
    });
    running = worker;
    try {
      await answerOf(worker, START_MS);
    } catch (error) {
      // What it says later is no answer to a question.
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
      const place = await line.acquire({ account_id, bytes: 0 }, bounds);
      try {
        return await answer(question);
      } finally {
        place.release();
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('The thread is closed.'));
      await running?.terminate();
    },
  };
}
