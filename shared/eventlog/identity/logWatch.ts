import { storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import type { IdentifiableLog } from './logIdentity.ts';
import type { Position } from '../../ports/eventStore.ts';
import { resolvesWithin } from '../../lib/time/resolvesWithin.ts';

/** An end of the log that has just been written, or is an event of others, takes a second. */
const LEAST_MS = 2_000;

/**
 * Looks, while a subscription brings nothing, whether the log answers and has nothing more. Resolves
 * true then, and false while more may be on its way. `reached` is what the subscription has brought.
 * Errors: `store_unavailable` when the log does not answer within the time, in milliseconds, or goes
 * on for so long, and at least 2 s, and the subscription does not.
 */
export function createLogWatch(log: Pick<IdentifiableLog, 'head'>, withinMs: number) {
  const limitMs = Math.max(withinMs, LEAST_MS);
  let ahead: { end: Position; since: number } | undefined;

  return async (reached: Position | undefined): Promise<boolean> => {
    let end: Position | undefined;
    const asked = log.head().then((at) => void (end = at));
    if (!(await resolvesWithin(asked, limitMs, { ref: false }))) {
      // Nobody waits for the answer any more.
      asked.catch(() => undefined);
      throw storeUnavailableError(`The event log has not answered for ${limitMs} ms.`);
    }
    if (end === undefined || (reached ?? '') >= end) {
      ahead = undefined;
      return true;
    }
    if (!ahead || (reached ?? '') >= ahead.end) ahead = { end, since: performance.now() };
    if (performance.now() - ahead.since < limitMs) return false;
    throw storeUnavailableError(
      `The event log goes on to ${end}, and its subscription brings nothing after ${reached ?? 'its beginning'}.`,
    );
  };
}
