import type { EventEmitter } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { createFairLanes, type LanePermit } from './fairLanes.ts';
import { resolvesWithin } from '../time/resolvesWithin.ts';
import type { TimedAnswer } from '../time/processorTime.ts';

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
   * Starts a thread with a memory limit. It sends `ready` first, and then one TimedAnswer per
   * message, in order.
   */
  start: () => Thread;
  /** Concurrent threads; two or more. The second one starts when two accounts need one. */
  threads: number;
  /** The time limit of one answer. */
  withinMs: number;
  /** The longest wait for earlier requests. */
  waitMs: number;
  /**
   * The processor time from which a request counts as slow, and for how long it does
   * (fairLanes.ts).
   */
  slowMs: number;
  slowForMs: number;
}

export interface WorkerClient<Question, Answer> extends AsyncDisposable {
  /**
   * Sends a request when its turn comes; accounts take turns, and those with slow requests leave a
   * thread to the others. Rejects with WorkerTimeout, or with `overloaded` or `rate_limited` after
   * too long a wait.
   */
  request(question: Question, accountId: string): Promise<Answer>;
}

/** An answer took too long or exceeded the memory limit. */
export class WorkerTimeout extends Error {}

/** A request that is sent again, because it was slow and other accounts wait. */
class SentAgain extends Error {}

/** Waiting time counts here, which on a busy machine is more than processor time. */
const MOVED_AFTER = 2;
/** The checks at which a request may be sent again; later, too much work would be lost. */
const MOVE_CHECKS = 3;

/** A busy machine starts threads slowly; the request does not cause that. */
const START_MS = 15_000;

/** A thread's place, with the thread once it is needed. */
interface Slot {
  thread: Promise<Thread> | undefined;
  isBusy: boolean;
}

/** Why a thread has ended: WorkerTimeout, unless it failed for another reason than its memory. */
const endOf = (failure: NodeJS.ErrnoException | undefined): Error =>
  failure === undefined || failure.code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? new WorkerTimeout('The thread has ended.', { cause: failure })
    : failure;

/** Each of these replaces the `resourceLimits` of all threads that start while it is set. */
const OVERRIDING_FLAGS = ['--max-old-space-size', '--max-semi-space-size', '--max-heap-size'];

/**
 * Makes the heap limits of threads effective. Where the process was started with a heap limit, V8
 * ignores those of threads, and each of them may use as much. Call this before the first thread starts;
 * V8 has read the flags for the heap of this thread, which keeps its limit.
 */
export function applyThreadHeapLimits(): void {
  for (const flag of OVERRIDING_FLAGS) setFlagsFromString(`${flag}=0`);
}

/** The next message. Rejects with WorkerTimeout after too long, and when the thread ends. */
async function answerOf(worker: Thread, withinMs: number): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  let failure: Error | undefined;
  const onFailure = (error: Error): void => void (failure = error);
  const onExit = (): void => reject(endOf(failure));
  worker.once('message', resolve).once('error', onFailure).once('exit', onExit);
  try {
    if (await resolvesWithin(promise, withinMs)) return await promise;
    throw new WorkerTimeout('The thread took too long.');
  } finally {
    worker.off('message', resolve).off('error', onFailure).off('exit', onExit);
  }
}

/**
 * Worker threads for untrusted input that may take unlimited time or memory. They start with the
 * first requests; a request that exceeds the limits terminates its thread, and another is started.
 */
export function createWorkerClient<Question, Answer>(
  program: WorkerOptions,
): WorkerClient<Question, Answer> {
  const { name, threads, slowMs, slowForMs, waitMs } = program;
  const lanes = createFairLanes(name, { permits: threads, slowMs, slowForMs });
  const closing = new AbortController();
  const slots = Array.from({ length: threads }, (): Slot => ({ thread: undefined, isBusy: false }));
  const running = new Set<Thread>();

  async function start(slot: Slot): Promise<Thread> {
    const worker = program.start();
    running.add(worker);
    worker.unref();
    // Waiting callers observe `exit`; an unhandled `error` event would end the process.
    worker.on('error', () => undefined);
    worker.on('exit', () => {
      running.delete(worker);
      slot.thread = undefined;
    });
    try {
      await answerOf(worker, START_MS);
    } catch (error) {
      // Later messages of this thread must not be taken for answers.
      await worker.terminate();
      throw error;
    }
    return worker;
  }

  /** The thread of a slot. One that could not be started is started anew for the next request. */
  const threadOf = (slot: Slot): Promise<Thread> =>
    (slot.thread ??= start(slot).catch((error: unknown) => {
      slot.thread = undefined;
      throw error;
    }));

  /** Rejects with SentAgain when a slow request must leave its thread to others. */
  function movesFrom(permit: LanePermit): Promise<never> & Disposable {
    const { promise, reject } = Promise.withResolvers<never>();
    let checks = 0;
    const timer = setInterval(() => {
      checks += 1;
      if (!permit.moveToSlow() && checks <= MOVE_CHECKS)
        reject(new SentAgain('Other accounts wait for the thread.'));
    }, MOVED_AFTER * slowMs).unref();
    return Object.assign(promise, { [Symbol.dispose]: () => clearInterval(timer) });
  }

  async function answer(
    question: Question,
    worker: Thread,
    permit: LanePermit,
  ): Promise<TimedAnswer<Answer>> {
    using moved = movesFrom(permit);
    worker.postMessage(question);
    try {
      const answered = answerOf(worker, program.withinMs);
      return (await Promise.race([answered, moved])) as TimedAnswer<Answer>;
    } catch (error) {
      await worker.terminate();
      throw error;
    }
  }

  /** Slow accounts use the last thread, so that the first one stays started for the others. */
  const freeSlot = (isSlow: boolean): Slot =>
    isSlow ? slots.findLast(({ isBusy }) => !isBusy)! : slots.find(({ isBusy }) => !isBusy)!;

  async function send(question: Question, permit: LanePermit): Promise<Answer> {
    const slot = freeSlot(permit.isSlow);
    slot.isBusy = true;
    let ms = 0;
    try {
      const worker = await threadOf(slot);
      // Unless it is answered, the request has exceeded the limits or is slow.
      ms = Infinity;
      const timed = await answer(question, worker, permit);
      ms = timed.cpuMs;
      return timed.answer;
    } finally {
      slot.isBusy = false;
      permit.release(ms);
    }
  }

  return {
    async request(question, account_id) {
      for (;;) {
        const permit = await lanes.acquire(account_id, { waitMs, signal: closing.signal });
        try {
          return await send(question, permit);
        } catch (error) {
          // Its account is slow now: it waits behind other slow requests.
          if (!(error instanceof SentAgain)) throw error;
        }
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('The thread is closed.'));
      await Promise.all([...running].map((worker) => worker.terminate()));
    },
  };
}
