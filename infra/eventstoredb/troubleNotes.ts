import type { StoreLogger } from './logger.ts';
import { NO_ANSWER } from './trouble.ts';

/** A trouble whose sentence changes is logged no more often than this, in milliseconds. */
const LINE_MS = 5_000;
/** While nothing is known but that no answer has come, the node may only be slow: it is logged after this time, in milliseconds. */
const PATIENCE_MS = 1_000;

/** What is wrong with the store now: a line in the log when it begins, changes or ends. */
export function createTroubleNotes(logger: StoreLogger | undefined) {
  let trouble: string | undefined;
  let since = 0;
  let logged: { trouble: string; at: number } | undefined;

  function isNews(next: string): boolean {
    const now = performance.now();
    if (next === NO_ANSWER && now - since < PATIENCE_MS) return false;
    return !logged || (logged.trouble !== next && now - logged.at > LINE_MS);
  }

  return {
    get: () => trouble,
    set(next: string | undefined): void {
      if (next !== trouble) since = performance.now();
      trouble = next;
      if (next === undefined && logged) {
        // At the level of the line that it ends: who reads the one wants to read the other.
        logger?.warn({}, 'the event store can be used again');
        logged = undefined;
      } else if (next !== undefined && isNews(next)) {
        logger?.warn({}, next);
        logged = { trouble: next, at: performance.now() };
      }
    },
  };
}
