import { resumeTask } from './eventLoopWatchdog.ts';
import { createFairQueue } from './fairQueue.ts';
import { afterMicrotasks } from './yieldToEventLoop.ts';

/** A step of some tenths of a millisecond. Returns true while there is more to do. */
export type Step = () => boolean;

/** The time for steps per phase of the event loop, in milliseconds. */
const BUDGET_MS = 2;

/** Waiting work, that of an account's new requests apart. */
const waiting = createFairQueue<{ accountId: string; step: Step }>();
/** When steps began in this turn of the event loop; undefined before the first. */
let beganAt: number | undefined;
/** True until everything that a request without a wait does at first is done. */
let isBeginning = false;

function hasTime(): boolean {
  const now = performance.now();
  if (beganAt === undefined) {
    beganAt = now;
    setImmediate(beginTurn);
  }
  return now - beganAt < BUDGET_MS;
}

function enqueue(accountId: string, step: Step): void {
  waiting.push(accountId, { accountId, step });
}

function beginTurn(): void {
  beganAt = undefined;
  runWaiting();
}

function runWaiting(): void {
  if (waiting.size() === 0 || !hasTime()) return;
  const { accountId, step } = waiting.shift()!;
  if (step()) enqueue(accountId, step);
  afterMicrotasks(runWaiting);
}

/**
 * Runs the steps of a task: the first at once if the event loop has time for it, and the others in
 * its next turns. Accounts take turns, and so do the tasks of one account. Unlike with
 * `yieldToEventLoop`, the short steps of many tasks share one turn. Steps must not throw.
 */
export function runPaced(accountId: string, step: Step): void {
  if (waiting.size() === 0 && hasTime() && !step()) return;
  enqueue(accountId, step);
}

/**
 * Returns undefined if the event loop has time for a request now; otherwise the promise resolves in
 * one of its next turns, when it is the account's turn. Requests wait apart from the steps of the
 * account's running tasks: a flood of requests does not stop those.
 */
export function waitToBegin(accountId: string): Promise<void> | undefined {
  if (waiting.size() === 0 && !isBeginning && hasTime()) {
    // Of many that continue at once, all would see that there is time, before the first has used it.
    isBeginning = true;
    afterMicrotasks(() => {
      isBeginning = false;
      runWaiting();
    });
    return undefined;
  }
  return new Promise<void>((resolve) =>
    enqueue(`${accountId} requests`, () => {
      resolve();
      return false;
    }),
  ).then(resumeTask);
}
