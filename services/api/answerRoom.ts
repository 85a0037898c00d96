import type { ServerResponse } from 'node:http';
import { getHeapStatistics } from 'node:v8';
import { TurnlogError } from '../../shared/errors.ts';
import { LIMITS } from '../../shared/limits.ts';

/** Bytes that an answer holds, until it lets go of them. */
export interface Held {
  /** Holds so many bytes from now on, fewer or more. */
  resize(bytes: number): void;
  release(): void;
}

/**
 * The bytes that answers in progress hold, in one process: from before their rows are read until
 * their clients have taken them. No account gets more than half.
 */
export interface AnswerRoom {
  /**
   * Waits for room, in turn with other accounts, and in order within one. A small answer does not.
   * Errors: `overloaded` where none came in time, too many wait, or the client left.
   */
  take(accountId: string, bytes: number, response: ServerResponse): Promise<Held>;
  /** Takes room that is there and that nobody waits for. */
  tryTake(accountId: string, bytes: number): Held | undefined;
  /** Counts what can't wait any more, also where there is no room for it. */
  add(accountId: string, bytes: number): Held;
  /** True while answers wait, and where connections have more to send than there is room for. */
  isShort(unsent: number): boolean;
}

interface Waiter {
  bytes: number;
  admit: () => void;
}

const { answersOfHeap, answersWaiting, answerWaitMs, smallAnswerBytes } = LIMITS.http;
const RETRY_AFTER_S = 2;

const overloaded = (): TurnlogError =>
  new TurnlogError(
    'overloaded',
    'Too many large answers are being read from this process. Try again in a moment.',
    { retriable: true, retryAfterSeconds: RETRY_AFTER_S },
  );

const ofHeap = (): number => Math.floor(getHeapStatistics().heap_size_limit * answersOfHeap);

/** `bytes`: all that may be held. */
export function createAnswerRoom(bytes = ofHeap(), waitMs: number = answerWaitMs): AnswerRoom {
  const share = Math.floor(bytes / 2);
  const heldBy = new Map<string, number>();
  /** By account; the one whose turn it is comes first. */
  const queues = new Map<string, Waiter[]>();
  let held = 0;
  let waiting = 0;
  /** True while the one whose turn it is waits for others to let go: nobody overtakes it. */
  let isFull = false;

  function count(accountId: string, change: number): void {
    held += change;
    const now = (heldBy.get(accountId) ?? 0) + change;
    if (now > 0) heldBy.set(accountId, now);
    else heldBy.delete(accountId);
  }

  const hasShare = (accountId: string, wanted: number): boolean =>
    (heldBy.get(accountId) ?? 0) + wanted <= share;

  function hold(accountId: string, wanted: number): Held {
    let now = wanted;
    count(accountId, now);
    const resize = (next: number): void => {
      count(accountId, next - now);
      now = next;
      admitNext();
    };
    return { resize, release: () => resize(0) };
  }

  /** Passes over accounts that have their share, and over nobody else. */
  function admitNext(): void {
    isFull = false;
    for (let untried = queues.size; untried > 0;) {
      const [accountId, queue] = queues.entries().next().value!;
      const [waiter] = queue as [Waiter];
      const mayHave = hasShare(accountId, waiter.bytes);
      isFull = mayHave && held + waiter.bytes > bytes;
      if (isFull) return;
      queues.delete(accountId);
      if (mayHave) queue.shift();
      if (queue.length > 0) queues.set(accountId, queue);
      untried = mayHave ? queues.size : untried - 1;
      if (mayHave) waiter.admit();
    }
  }

  function leave(accountId: string, waiter: Waiter): void {
    const queue = queues.get(accountId)?.filter((other) => other !== waiter) ?? [];
    if (queue.length > 0) queues.set(accountId, queue);
    else queues.delete(accountId);
    admitNext();
  }

  function wait(accountId: string, wanted: number, response: ServerResponse): Promise<Held> {
    const queue = queues.get(accountId) ?? [];
    if (queue.length >= answersWaiting || response.closed) return Promise.reject(overloaded());
    return new Promise((resolve, reject) => {
      waiting += 1;
      const waiter = { bytes: wanted, admit: () => settle(() => resolve(hold(accountId, wanted))) };
      const giveUp = (): void =>
        settle(() => {
          leave(accountId, waiter);
          reject(overloaded());
        });
      const timer = setTimeout(giveUp, waitMs).unref();
      function settle(how: () => void): void {
        waiting -= 1;
        clearTimeout(timer);
        response.off('close', giveUp);
        how();
      }
      response.once('close', giveUp);
      queue.push(waiter);
      queues.set(accountId, queue);
      admitNext();
    });
  }

  function tryTake(accountId: string, wanted: number): Held | undefined {
    const isFree = !isFull && !queues.has(accountId) && held + wanted <= bytes;
    return isFree && hasShare(accountId, wanted) ? hold(accountId, wanted) : undefined;
  }

  return {
    async take(accountId, wanted, response) {
      if (wanted <= smallAnswerBytes) return hold(accountId, wanted);
      const most = Math.min(wanted, share);
      return tryTake(accountId, most) ?? (await wait(accountId, most, response));
    },
    tryTake,
    add: hold,
    isShort: (unsent) => waiting > 0 || unsent > bytes,
  };
}

/** Lets go once the client has the answer, or has gone. */
export function releaseWhenSent(held: Held, response: ServerResponse): void {
  if (response.closed) held.release();
  else response.once('close', held.release);
}
