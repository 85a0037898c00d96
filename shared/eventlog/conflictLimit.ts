import { createBackoff } from '../lib/time/backoff.ts';
import { storeUnavailableError, type TurnlogError } from '../lib/errors/turnlogError.ts';
import { sleep, type WaitLimits } from '../lib/time/sleep.ts';
import { reportDamage, type StreamSource } from './reading/reportDamage.ts';

const PAUSES = { firstMs: 5, longestMs: 250 };
/**
 * A stream that rejects appends this often, and for this long, after the revision that it shows as
 * its last holds events that it does not show. A lagging cluster node may do so temporarily, so the
 * limits are skipped only for a stream that was found damaged before.
 */
const STUCK_TIMES = 8;
const STUCK_MS = 5_000;
/** The default limit for any conflict: other writers may leave this one no chance. */
const LIMIT_MS = 10_000;

/** How long a loop may retry, and the error that ends it. */
export interface ConflictLimitOptions extends WaitLimits {
  /** The error after too many conflicts. By default `store_unavailable`. */
  limitError?: () => TurnlogError;
}

export interface ConflictLimit {
  /**
   * Call after each conflict, with the last revision that the stream showed. Waits with increasing
   * delay before the next attempt. Throws `stream_damaged` (recorded), the `limitError`,
   * `store_unavailable` or the abort reason.
   */
  recordConflict(revision: number): Promise<void>;
}

/** Limits one load, decide and append loop on a stream. */
export function createConflictLimit(
  source: StreamSource,
  stream: string,
  { until = performance.now() + LIMIT_MS, signal, limitError }: ConflictLimitOptions = {},
): ConflictLimit {
  let lastConflict: { revision: number; since: number; times: number } | undefined;
  const pauses = createBackoff(PAUSES);
  return {
    async recordConflict(revision) {
      if (lastConflict?.revision !== revision)
        lastConflict = { revision, since: performance.now(), times: 0 };
      lastConflict.times += 1;
      const isStuck =
        performance.now() - lastConflict.since >= STUCK_MS || source.damaged.has(stream);
      if (lastConflict.times >= STUCK_TIMES && isStuck) {
        throw await reportDamage(source, stream, {
          reason: `an event that the store does not show follows revision ${revision}`,
          revision: revision + 1,
        });
      }
      const pauseMs = pauses.next();
      if (performance.now() + pauseMs > until)
        throw (
          limitError?.() ??
          storeUnavailableError(`Other writers keep appending to the stream ${stream}.`)
        );
      await sleep(pauseMs, signal);
    },
  };
}
