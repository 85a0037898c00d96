import { LRUCache } from 'lru-cache';
import { resumeTask } from './eventLoopWatchdog.ts';
import { createFairQueue } from './fairQueue.ts';
import { registerResource } from './resources.ts';

/** For work of all accounts, or of none. It never rests. */
export const NO_ACCOUNT = '';

/** The approximate amount of text processed between two yields. */
export const SLICE_BYTES = 64 * 1_024;

/** The time of work after which `createPause` yields by default, in milliseconds. */
const SLICE_MS = 5;

/** The time of tasks after which their account rests, and the longest rest, in milliseconds. */
const REST_MS = { after: 1, longest: 20 };

/** How long an account counts as active after a request, in milliseconds, and how many are remembered. */
const ACTIVE = { ms: 1_000, accounts: 1_000 };

/**
 * An account whose tasks took less than `ofAccount` in the last second does not wait between two tasks
 * of others, where such tasks of all accounts may begin for `between`, in milliseconds.
 */
const LITTLE_MS = { ofAccount: 50, between: 2 };

interface Waiting {
  accountId: string;
  resume: () => void;
}

const waiting = createFairQueue<Waiting>();
let isRunning = false;
registerResource('event_loop_slices', { usage: () => ({ waiting: waiting.size() }) });

/** Accounts that rest, with the time at which each may run the next task. */
const resting = new Map<string, number>();
let restTimer: NodeJS.Timeout | undefined;

/** The time of tasks since the last one that had to wait for its turn. */
let littleMs = 0;

interface Activity {
  /** When the account last began a request. */
  requestedAt: number;
  /** The time of its tasks since it last rested. */
  workedMs: number;
  /** The time of its tasks since `countedFrom`, about a second at the most. */
  recentMs: number;
  countedFrom: number;
}

/** Iterated from the account of the latest request on. */
const activities = new LRUCache<string, Activity>({ max: ACTIVE.accounts });

/**
 * Event loop turns between two tasks. A small request takes several; they are almost free while
 * there is none.
 */
const LOOP_TURNS_BETWEEN = 4;

/** Notes that an account has begun a request. */
export function markAccountActive(accountId: string): void {
  const requestedAt = performance.now();
  const activity = activities.get(accountId);
  if (activity) activity.requestedAt = requestedAt;
  else
    activities.set(accountId, {
      requestedAt,
      workedMs: 0,
      recentMs: 0,
      countedFrom: requestedAt,
    });
}

/** True unless another account has begun a request lately. */
function isAlone(accountId: string, now: number): boolean {
  for (const [id, { requestedAt }] of activities.entries())
    if (id !== accountId) return now - requestedAt > ACTIVE.ms;
  return true;
}

/** Calls back after everything that was resolved, which is part of the time of a task. */
export function afterMicrotasks(callback: () => void): void {
  queueMicrotask(() => process.nextTick(callback));
}

function countTask(accountId: string, tookMs: number, now: number): void {
  const activity = activities.peek(accountId);
  // Work for no account, or for all of them, never rests.
  if (!activity) return;
  if (now - activity.countedFrom > ACTIVE.ms) {
    activity.recentMs = 0;
    activity.countedFrom = now;
  }
  activity.recentMs += tookMs;
  const workedMs = activity.workedMs + tookMs;
  const hasToRest = workedMs >= REST_MS.after;
  activity.workedMs = hasToRest ? 0 : workedMs;
  if (hasToRest && !isAlone(accountId, now))
    resting.set(accountId, now + Math.min(workedMs, REST_MS.longest));
}

/** Returns the next task of an account that does not rest. */
function shiftRested(now: number): Waiting | undefined {
  if (resting.size === 0) return waiting.shift();
  for (const [accountId, until] of resting) if (until <= now) resting.delete(accountId);
  const next = waiting.shift((accountId) => !resting.has(accountId));
  if (!next && waiting.size() > 0) {
    clearTimeout(restTimer);
    restTimer = setTimeout(start, Math.ceil(Math.min(...resting.values()) - now));
  }
  return next;
}

/** Returns the next task of an account whose tasks took little time lately. */
function shiftLittle(now: number): Waiting | undefined {
  if (littleMs >= LITTLE_MS.between) return undefined;
  return waiting.shift((accountId) => {
    const activity = activities.peek(accountId);
    if (!activity || (resting.get(accountId) ?? 0) > now) return false;
    return activity.recentMs < LITTLE_MS.ofAccount || now - activity.countedFrom > ACTIVE.ms;
  });
}

/** Runs the next task in so many turns of the event loop, or now if it takes little time. */
function runNext(turnsLeft: number): void {
  const beganAt = performance.now();
  const isBetween = turnsLeft > 0;
  const next = isBetween ? shiftLittle(beganAt) : shiftRested(beganAt);
  isRunning = next !== undefined || isBetween;
  if (!isRunning) return;
  next?.resume();
  afterMicrotasks(() => {
    const now = performance.now();
    littleMs = isBetween ? littleMs + now - beganAt : 0;
    if (next) countTask(next.accountId, now - beganAt, now);
  });
  setImmediate(runNext, turnsLeft > 0 ? turnsLeft - 1 : LOOP_TURNS_BETWEEN - 1);
}

function start(): void {
  if (isRunning) return;
  isRunning = true;
  setImmediate(runNext, 0);
}

/**
 * Resolves when the caller may run a task of some milliseconds. Tasks run one at a time, some event
 * loop turns apart unless the account has had little work lately, and accounts take turns: a hundred
 * large responses hardly delay a small one longer than one of them does. While other accounts send
 * requests, an account rests after its tasks for as long as they ran before they waited for something
 * else, at most 20 ms, so that the others have half of the time. The number of waiting tasks is bounded by
 * the limits of bodies, runs and responses.
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
