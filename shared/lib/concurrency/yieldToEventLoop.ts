import { resumeTask } from './eventLoopWatchdog.ts';
import { createFairQueue } from './fairQueue.ts';
import { registerResource } from './resources.ts';

/** The approximate amount of text processed between two yields. */
export const SLICE_BYTES = 64 * 1_024;

/** The time of work after which `createPause` yields by default, in milliseconds. */
const SLICE_MS = 5;

const waiting = createFairQueue<() => void>();
let isRunning = false;
registerResource('event_loop_slices', { usage: () => ({ waiting: waiting.size() }) });

/**
 * Event loop turns between two tasks. A small request takes several; they are almost free while
 * there is none.
 */
const LOOP_TURNS_BETWEEN = 4;

function runNext(turnsLeft: number): void {
  if (turnsLeft > 0) return void setImmediate(runNext, turnsLeft - 1);
  const next = waiting.shift();
  isRunning = next !== undefined;
  if (!next) return;
  next();
  setImmediate(runNext, LOOP_TURNS_BETWEEN - 1);
}

/**
 * Resolves when the caller may run a task of some milliseconds. Tasks run one at a time, some event
 * loop turns apart, and accounts take turns: a hundred large responses hardly delay a small one
 * longer than one of them does. The number of waiting tasks is bounded by the limits of bodies,
 * runs and responses.
 */
export async function yieldToEventLoop(accountId: string): Promise<void> {
  await new Promise<void>((resolve) => {
    waiting.push(accountId, resolve);
    if (isRunning) return;
    isRunning = true;
    setImmediate(runNext, 0);
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
