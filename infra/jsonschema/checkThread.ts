import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { LIMITS } from '../../shared/limits.ts';
import { settlesWithin } from '../../shared/settlesWithin.ts';
import type { Question } from './check.ts';

interface CheckThread {
  /** One question at a time. Errors: an Error where it took too long, or the thread ended. */
  ask(question: Question): Promise<string | undefined>;
  close(): Promise<void>;
}

/** A busy machine takes its time to start a thread; this is not the schema's doing. */
const START_MS = 15_000;

const ended = (): Error => new Error('The thread that checks schemas has ended.');

async function answerOf(worker: Worker, withinMs: number): Promise<string | undefined> {
  const over = new AbortController();
  const answered = once(worker, 'message', over).then(([said]) => said as string | undefined);
  const exited = once(worker, 'exit', over).then(() => Promise.reject(ended()));
  const answer = Promise.race([answered, exited]);
  try {
    if (await settlesWithin(answer, withinMs)) return await answer;
    throw new Error('The check of a schema took too long.');
  } finally {
    over.abort();
    await Promise.allSettled([answered, exited]);
  }
}

/**
 * A thread that checks, started when it is first asked. What takes longer than LIMITS.responseFormat
 * allows, or more memory, ends it; the next question starts another.
 */
export function createCheckThread(): CheckThread {
  let running: Worker | undefined;

  async function start(): Promise<Worker> {
    const worker = new Worker(new URL('checkWorker.ts', import.meta.url), {
      name: 'schemas',
      resourceLimits: { maxOldGenerationSizeMb: LIMITS.responseFormat.heapMb },
    });
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

  return {
    async ask(question) {
      const worker = running ?? (await start());
      const answer = answerOf(worker, LIMITS.responseFormat.checkMs);
      worker.postMessage(question);
      try {
        return await answer;
      } catch (error) {
        await worker.terminate();
        throw error;
      }
    },
    close: async () => void (await running?.terminate()),
  };
}
