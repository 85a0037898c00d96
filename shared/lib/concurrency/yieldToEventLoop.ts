import { resumeTask } from './eventLoopWatchdog.ts';
import { createFairQueue } from './fairQueue.ts';
import { registerResource } from './resources.ts';

/** The approximate amount of text processed between two yields. */
export const SLICE_BYTES = 64 * 1_024;

/** The time of work after which `createPause` yields by default, in milliseconds. */
const SLICE_MS = 5;

/** Tasks of this time or longer are followed by a rest, which is at most as long as this, in milliseconds. */
const REST_MS = { least: 1, most: 20 };

/** How long an account counts as active after a request, in milliseconds. */
const ACTIVE_MS = 1_000;

interface Waiting {
  accountId: string;
  resume: () => void;
}

const waiting = createFairQueue<Waiting>();
let isRunning = false;
registerResource('event_loop_slices', { usage: () => ({ waiting: waiting.size() }) });

/** Accounts whose last task was long, with the time at which each may run the next. */
const resting = new Map<string, number>();

/** The latest request of all, and the latest one of another account than that. */
let latest = { accountId: '', at: -Infinity };
let latestOther = latest;

/**
 * Event loop turns between two tasks. A small request takes several; they are almost free while
 * there is none.
 */
const LOOP_TURNS_BETWEEN = 4;

/** Notes that an account has begun a request. */
export function noteRequest(accountId: string, at: number): void {
  if (latest.accountId !== accountId) latestOther = latest;
  latest = { accountId, at };
}

/** True unless another account has begun a request lately. */
function isAlone(accountId: string, now: number): boolean {
  const other = latest.accountId === accountId ? latestOther : latest;
  return now - other.at > ACTIVE_MS;
}

/** Calls back after everything that was resolved, which is part of the time of a task. */
export function afterMicrotasks(callback: () => void): void {
  queueMicrotask(() => process.nextTick(callback));
}

const mayRun = (accountId: string): boolean =>
  (resting.get(accountId) ?? 0) <= performance.now();

function endTask(accountId: string, beganAt: number): void {
  const now = performance.now();
  for (const [restingId, until] of resting) if (until <= now) resting.delete(restingId);
  const tookMs = now - beganAt;
  if (tookMs >= REST_MS.least && !isAlone(accountId, now))
    resting.set(accountId, now + Math.min(tookMs, REST_MS.most));
}

function runNext(turnsLeft: number): void {
  if (turnsLeft > 0) return void setImmediate(runNext, turnsLeft - 1);
  const next = waiting.shift(mayRun);
  isRunning = next !== undefined;
  if (next) {
    const { accountId, resume } = next;
    const beganAt = performance.now();
    resume();
    afterMicrotasks(() => endTask(accountId, beganAt));
    setImmediate(runNext, LOOP_TURNS_BETWEEN - 1);
  } else if (waiting.size() > 0) {
    setTimeout(start, Math.min(...resting.values()) - performance.now());
  }
}

function start(): void {
  if (isRunning) return;
  isRunning = true;
  setImmediate(runNext, 0);
}

/**
 * Resolves when the caller may run a task of some milliseconds. Tasks run one at a time, some event
 * loop turns apart, and accounts take turns: a hundred large responses hardly delay a small one
 * longer than one of them does. While other accounts send requests, an account rests after each task
 * for as long as it took, so that its tasks take at most half of the time. The number of waiting tasks
 * is bounded by the limits of bodies, runs and responses.
 */
export async function yieldToEventLoop(accountId: string): Promise<void> {
  await new Promise<void>((resume) => {
    waiting.push(accountId, { accountId, resume });
    start();
  });
  resumeTask();
}

/** Like yieldToEventLoop, but returns at once for a short text. */
export async function yieldForText(accountId: string, chars: number): Promise<void> {
  if (chars > SLICE_BYTES) await yieldToEventLoop(accountId);
}

/** Yields to the event loop if some milliseconds have passed since it last did. */
export type Pause = () => Promise<void> | undefined;

/**
 * For loops whose awaits may never wait, such as those over reads of an embedded log: call the
 * function before each part of the work. `accountOf` is only called when it yields.
 */
export function createPause(accountOf: () => string, afterMs = SLICE_MS): Pause {
  let began = performance.now();
  return () =>
    performance.now() - began < afterMs
      ? undefined
      : yieldToEventLoop(accountOf()).then(() => void (began = performance.now()));
}

/** Maps items in order, and yields to the event loop after every few milliseconds of work. */
export async function mapInSlices<Item, Result>(
  accountId: string,
  items: readonly Item[],
  map: (item: Item) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  const pause = createPause(() => accountId);
  for (const item of items) {
    const pausing = pause();
    if (pausing) await pausing;
    results.push(map(item));
  }
  return results;
}
