import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { createFairLine } from '../../shared/fairLine.ts';
import { settlesWithin } from '../../shared/settlesWithin.ts';

/** Says `ready` when it starts, and then answers each message with one, in order. */
interface Program {
  script: URL;
  name: string;
  heapMb: number;
  /** For one answer. */
  withinMs: number;
  /** For the questions of others that come first. */
  waitMs: number;
}

export interface AskedThread<Question, Answer> extends AsyncDisposable {
  /**
   * Asks when those who came before have their answers; the accounts take turns. Errors: GaveUp;
   * `overloaded`, `rate_limited` for one who waited too long.
   */
  ask(question: Question, accountId: string): Promise<Answer>;
}

/** An answer took too long, or more memory than there is. */
export class GaveUp extends Error {}

/** A busy machine takes its time to start a thread; this is not the question's doing. */
const START_MS = 15_000;
/** The thread does one thing after the other. */
const ONE = { places: 1, bytes: Infinity };

async function answerOf(worker: Worker, withinMs: number): Promise<unknown> {
  const over = new AbortController();
  const answered = once(worker, 'message', over).then(([said]) => said as unknown);
  const exited = once(worker, 'exit', over).then(() =>
    Promise.reject(new GaveUp('The thread has ended.')),
  );
  const answer = Promise.race([answered, exited]);
  try {
    if (await settlesWithin(answer, withinMs)) return await answer;
    throw new GaveUp('The thread took too long.');
  } finally {
    over.abort();
    await Promise.allSettled([answered, exited]);
  }
}

/**
 * A thread for work on what others wrote, which may take for ever or all the memory there is; it is
 * started when it is first asked. What is over its bounds ends it; the next question starts another.
 */
export function createAskedThread<Question, Answer>(
  program: Program,
): AskedThread<Question, Answer> {
  const line = createFairLine(ONE);
  const closing = new AbortController();
  let running: Worker | undefined;

  async function start(): Promise<Worker> {
    const worker = new Worker(program.script, {
      name: program.name,
      resourceLimits: { maxOldGenerationSizeMb: program.heapMb },
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
    async ask(question, account_id) {
      const bounds = { waitMs: program.waitMs, signal: closing.signal };
      const place = await line.enter({ account_id, bytes: 0 }, bounds);
      try {
        return await answer(question);
      } finally {
        place.leave();
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new Error(`The thread "${program.name}" is closed.`));
      await running?.terminate();
    },
  };
}
