import { createBackoff } from '../lib/time/backoff.ts';
import { storeUnavailableError, type TurnlogError } from '../lib/errors/turnlogError.ts';
import { sleep, type WaitLimits } from '../lib/time/sleep.ts';
import { reportDamage, type StreamSource } from './reading/reportDamage.ts';

const PAUSES = { firstMs: 5, longestMs: 250 };
/**
 * A stream that refuses an append this often, for this long, after the revision that it shows as
 * its last, shows too little. A node of a cluster that only follows may do so for a while, and is
 * believed at once only where the stream was found damaged before.
 */
const STUCK_TIMES = 8;
const STUCK_MS = 5_000;
/**
 * By default, however the stream moves: others who write without a pause leave no place for this
 * writer.
 */
const LIMIT_MS = 10_000;

/** How long a loop may go on, and what it ends with. */
export interface ConflictLimitOptions extends WaitLimits {
  /** What a loop that others leave no place for ends with. By default `store_unavailable`. */
  limitError?: () => TurnlogError;
}

export interface ConflictLimit {
  /**
   * To be called with each conflict, and the revision that the stream showed as its last: makes a
   * pause, which grows, before the next try.
   * Errors: `stream_damaged` (noted), what `tooMany` gives, `store_unavailable`, the signal's
   * reason.
   */
  recordConflict(revision: number): Promise<void>;
}

/** Bounds one loop of load → append → conflict on a stream. */
export function createConflictLimit(
  source: StreamSource,
  stream: string,
  { until = performance.now() + LIMIT_MS, signal, limitError: tooMany }: ConflictLimitOptions = {},
): ConflictLimit {
  let last: { revision: number; since: number; times: number } | undefined;
  const pauses = createBackoff(PAUSES);
  return {
    async recordConflict(revision) {
      if (last?.revision !== revision) last = { revision, since: performance.now(), times: 0 };
      last.times += 1;
      const forLong = performance.now() - last.since >= STUCK_MS || source.damaged.has(stream);
      if (last.times >= STUCK_TIMES && forLong) {
        throw await reportDamage(source, stream, {
          reason: `something that is not shown follows revision ${revision}`,
          revision: revision + 1,
        });
      }
      const pauseMs = pauses.next();
      if (performance.now() + pauseMs > until)
        throw (
          tooMany?.() ??
          storeUnavailableError(`Others write to the stream ${stream} without a pause.`)
        );
      await sleep(pauseMs, signal);
    },
  };
}
