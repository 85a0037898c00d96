import { createBackoff } from '../../lib/time/backoff.ts';
import { sessionErasedError } from '../../erasure/errors.ts';
import { TurnlogError, type ErrorCode } from '../../lib/errors/turnlogError.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { KnownEvent } from '../../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../../limits.ts';
import { sleep } from '../../lib/time/sleep.ts';
import { idempotencyInProgress } from '../../requests/claim.ts';
import { interruptIfOrphaned } from '../recovery/interruptTurn.ts';
import type { RunContext } from '../context.ts';
import type { FoundTurn } from '../findTurn.ts';
import { resultOf, type RecordedEnd, type RunResult } from '../runResult.ts';
import { endedByOthers } from './turnEnds.ts';

const PAGE = 32;
const PAUSES = { firstMs: 10, longestMs: 250 };
/** How often it is asked whether anybody still runs the turn. */
const ORPHAN_EVERY_MS = 2_000;

/** Failures that are answered with how long to wait. */
const PASSING: ReadonlySet<string> = new Set<ErrorCode>([
  'model_overloaded',
  'overloaded',
  'store_unavailable',
]);

/** What a turn that ended so is answered with, now as the first time. */
function answerOf(
  { session_id, context }: FoundTurn,
  { event, recorded }: KnownEvent,
): RunResult | Error {
  if (event.type === 'session.erased.v1' || recorded.erased) return sessionErasedError();
  if (event.type === 'session.turn_completed.v1') return resultOf(session_id, event.data, context);
  if (event.type === 'session.turn_failed.v1') {
    const { code, message } = event.data;
    const wait = PASSING.has(code) ? { retriable: true, retryAfterSeconds: 1 } : {};
    return new TurnlogError(code as ErrorCode, message, wait);
  }
  const cancelled =
    event.type === 'session.turn_interrupted.v1' && event.data.reason === 'cancelled';
  return endedByOthers(cancelled ? 'cancelled' : 'ended');
}

const ENDS: ReadonlySet<string> = new Set([
  'session.turn_completed.v1',
  'session.turn_failed.v1',
  'session.turn_interrupted.v1',
  'session.erased.v1',
]);

/** Reads on from where a turn began until it has ended; each time only what is new. */
function createEndReader(context: RunContext, { session_id, revision }: FoundTurn) {
  let from = revision;
  return async (): Promise<KnownEvent | undefined> => {
    for (;;) {
      const page = await readPage(context, sessionStream(session_id), {
        direction: 'forwards',
        from,
        limit: PAGE,
        maxBytes: LIMITS.store.pageBytes,
      });
      const end = page.find(({ event }) => ENDS.has(event.type));
      if (end || page.length === 0) return end;
      from = page.at(-1)!.recorded.revision + 1;
    }
  };
}

/**
 * How a turn ended that another try began, once it has; one that nobody runs any more is closed.
 * Errors: `idempotency_in_progress` where it goes on for longer than `until` (of
 * `performance.now()`), `stream_damaged` (noted), `key_missing`, `release_too_old`,
 * `store_unavailable`.
 */
export async function recordedEnd(
  context: RunContext,
  found: FoundTurn,
  until: number,
): Promise<RecordedEnd> {
  const { session_id, owner } = found;
  const readEnd = createEndReader(context, found);
  const pauses = createBackoff(PAUSES);
  let askedAt = -Infinity;
  for (;;) {
    const end = await readEnd();
    if (end) return { answer: answerOf(found, end), position: end.recorded.position };
    const now = performance.now();
    // What this process runs itself it also closes.
    if (owner !== context.instance.id && now - askedAt > ORPHAN_EVERY_MS) {
      askedAt = now;
      await interruptIfOrphaned(context, { session_id }, { until });
    }
    const pauseMs = pauses.next();
    if (now + pauseMs > until) throw idempotencyInProgress();
    await sleep(pauseMs);
  }
}
