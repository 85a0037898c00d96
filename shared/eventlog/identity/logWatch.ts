import { storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import type { IdentifiableLog } from './logIdentity.ts';
import type { Position } from '../../ports/eventStore.ts';
import { resolvesWithin } from '../../lib/time/resolvesWithin.ts';

/**
 * The end of the log is reached within about a second even if it has just been written or is an
 * event of another program.
 */
const LEAST_MS = 2_000;

/**
 * Checks, while a subscription delivers nothing, that the log responds and has no further events.
 * Resolves true then, false while more events may be on their way. `reached` is the last delivered
 * position. Throws `store_unavailable` when the log does not respond, or goes on while nothing is
 * delivered, for longer than `withinMs` (at least 2 s). Catching up with a long log is no fault.
 */
export function createLogWatch(log: Pick<IdentifiableLog, 'head'>, withinMs: number) {
  const limitMs = Math.max(withinMs, LEAST_MS);
  let waiting: { reached: Position | undefined; since: number } | undefined;

  return async (reached: Position | undefined): Promise<boolean> => {
    let end: Position | undefined;
    const reading = log.head().then((at) => void (end = at));
    if (!(await resolvesWithin(reading, limitMs, { ref: false }))) {
      // The answer is no longer needed.
      reading.catch(() => undefined);
      throw storeUnavailableError(`The event log has not answered for ${limitMs} ms.`);
    }
    if (end === undefined || (reached ?? '') >= end) {
      waiting = undefined;
      return true;
    }
    if (!waiting || reached !== waiting.reached) waiting = { reached, since: performance.now() };
    if (performance.now() - waiting.since < limitMs) return false;
    throw storeUnavailableError(
      `The event log continues to ${end}, but its subscription delivers nothing after ${reached ?? 'its beginning'}.`,
    );
  };
}
