import type { StoreLogger } from './logger.ts';

/** A trouble whose sentence changes is logged no more often than this, in milliseconds. */
const LINE_MS = 5_000;

/** What is wrong with the store now: a line in the log when it begins, changes or ends. */
export function createTroubleNotes(logger: StoreLogger | undefined) {
  let trouble: string | undefined;
  let logged: { trouble: string; at: number } | undefined;

  return {
    get: () => trouble,
    set(next: string | undefined): void {
      trouble = next;
      if (next === undefined && logged) {
        // At the level of the line that it ends: who reads the one wants to read the other.
        logger?.warn({}, 'the event store can be used again');
        logged = undefined;
      } else if (
        next !== undefined &&
        (!logged || (logged.trouble !== next && performance.now() - logged.at > LINE_MS))
      ) {
        logger?.warn({}, next);
        logged = { trouble: next, at: performance.now() };
      }
    },
  };
}
