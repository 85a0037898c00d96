import type { Position } from '../ports/eventStore.ts';
import { resolvesWithin } from '../lib/time/resolvesWithin.ts';
import { waitUntilTurnVisible, type VisibilityContext } from '../commandHandling/context.ts';
import { idempotencyInProgress, type Claim } from '../requests/idempotency.ts';
import type { RunContext, RunSlice } from './context.ts';
import { createTurnSearch, TurnAlreadyStarted, type RequestTurn } from './turnSearch.ts';
import { type RecordedResult, type RunResult, runResultOf } from './runResult.ts';
import { createBackoff } from '../lib/time/backoff.ts';
import { sessionErasedError } from '../erasure/errors.ts';
import { TurnlogError, type ErrorCode } from '../lib/errors/turnlogError.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { KnownEvent } from '../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../limits.ts';
import { sleep } from '../lib/time/sleep.ts';
import { interruptIfOrphaned, type RecoveryContext } from './recovery/interruptTurn.ts';
import { turnEndedError } from './queueing/turnWatch.ts';

/** What waiting for a turn of another attempt needs. */
type JoinContext = RecoveryContext &
  VisibilityContext &
  RunSlice<'instance' | 'limits' | 'onIdempotentReplay', 'turnEndLookups' | 'turnWaits'>;

const PAGE = 32;
const PAUSES = { firstMs: 10, longestMs: 250 };
/** How often it is asked whether anybody still runs the turn. */
const ORPHAN_EVERY_MS = 2_000;

/** Failures that are answered with how long to wait. */
const TRANSIENT_ERRORS: ReadonlySet<string> = new Set<ErrorCode>([
  'model_overloaded',
  'overloaded',
  'store_unavailable',
]);

/** What a turn that ended so is answered with, now as the first time. */
function recordedAnswer(
  { session_id, context }: RequestTurn,
  { event, recorded }: KnownEvent,
): RunResult | Error {
  if (event.type === 'session.erased.v1' || recorded.erased) return sessionErasedError();
  if (event.type === 'session.turn_completed.v1')
    return runResultOf(session_id, event.data, context);
  if (event.type === 'session.turn_failed.v1') {
    const { code, message } = event.data;
    const wait = TRANSIENT_ERRORS.has(code) ? { retriable: true, retryAfterSeconds: 1 } : {};
    return new TurnlogError(code as ErrorCode, message, wait);
  }
  const cancelled =
    event.type === 'session.turn_interrupted.v1' && event.data.reason === 'cancelled';
  return turnEndedError(cancelled ? 'cancelled' : 'ended');
}

const TURN_END_TYPES: ReadonlySet<string> = new Set([
  'session.turn_completed.v1',
  'session.turn_failed.v1',
  'session.turn_interrupted.v1',
  'session.erased.v1',
]);

/** Reads on from where a turn began until it has ended; each time only what is new. */
function createEndReader(context: StreamSource, { session_id, revision }: RequestTurn) {
  let from = revision;
  return async (): Promise<KnownEvent | undefined> => {
    for (;;) {
      const page = await readPage(context, sessionStream(session_id), {
        direction: 'forwards',
        from,
        limit: PAGE,
        maxBytes: LIMITS.store.pageBytes,
      });
      const end = page.find(({ event }) => TURN_END_TYPES.has(event.type));
      if (end || page.length === 0) return end;
      from = page.at(-1)!.recorded.revision + 1;
    }
  };
}

/**
 * How a turn ended that another try began, once it has; one that nobody runs any more is closed.
 */
async function waitForRecordedResult(
  context: RecoveryContext & Pick<RunContext, 'instance'>,
  found: RequestTurn,
  until: number,
): Promise<RecordedResult> {
  const { session_id, owner } = found;
  const readEnd = createEndReader(context, found);
  const pauses = createBackoff(PAUSES);
  let askedAt = -Infinity;
  for (;;) {
    const end = await readEnd();
    if (end) return { answer: recordedAnswer(found, end), position: end.recorded.position };
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

/** A run whose turn has begun. It goes on and is recorded, whoever waits for its end. */
export interface StartedRun {
  session_id: string;
  turn: number;
  /** Where its beginning stands in the log. */
  position: Position;
  readonly result: Promise<RunResult>;
  /**
   * Where another try of the request began the turn: the same, for who waits so many milliseconds
   * for the end.
   */
  resultWithin?: (waitMs: number) => Promise<RunResult>;
}

/** The longest that an answer waits for a turn of another try beyond the time that a run may take. */
const AFTERWARDS_MS = 30_000;

/** However many tries wait for a turn, one looks for its end. */
function findSharedEnd(context: JoinContext, found: RequestTurn): Promise<RecordedResult> {
  const { turnEndLookups } = context.runState;
  const name = `${found.session_id} ${found.turn}`;
  const known = turnEndLookups.get(name);
  if (known) return known;
  const until = performance.now() + context.limits.timeoutMs + AFTERWARDS_MS;
  const looking = waitForRecordedResult(context, found, until).finally(() =>
    turnEndLookups.delete(name),
  );
  turnEndLookups.set(name, looking);
  return looking;
}

/** What the turn is answered with, once reads show it. */
async function waitForResult(
  context: JoinContext,
  found: RequestTurn,
  waitMs = Infinity,
): Promise<RunResult> {
  const end = findSharedEnd(context, found);
  if (waitMs < Infinity && !(await resolvesWithin(end, waitMs))) throw idempotencyInProgress();
  const { answer, position } = await end;
  context.onIdempotentReplay?.();
  await waitUntilTurnVisible(context, position);
  if (answer instanceof Error) throw answer;
  return answer;
}

/** Takes one of the places of those who wait for turns. */
async function withWaitPermit<Result>(
  { runState }: RunSlice<never, 'turnWaits'>,
  account_id: string,
  wait: () => Promise<Result>,
): Promise<Result> {
  const place = runState.turnWaits.acquire({ account_id, bytes: 0 });
  try {
    return await wait();
  } finally {
    place.release();
  }
}

function joinTurn(context: JoinContext, account_id: string, found: RequestTurn): StartedRun {
  const { session_id, turn, position } = found;
  let ended: Promise<RunResult> | undefined;
  return {
    session_id,
    turn,
    position,
    resultWithin: (waitMs) =>
      withWaitPermit(context, account_id, () => waitForResult(context, found, waitMs)),
    get result() {
      context.onIdempotentReplay?.();
      return (ended ??= waitForResult(context, found));
    },
  };
}

/**
 * Begins the turn of a request, unless a try of it has: then gives that one. Of tries in this
 * process one is at it, and the others wait until that has begun, or has given up; of tries
 * elsewhere the session's stream takes one.
 */
export async function startOnce(
  context: JoinContext & RunSlice<'store', 'startingTurns'>,
  { account_id, session_id, claim }: { account_id: string; session_id: string; claim: Claim },
  begin: () => Promise<StartedRun>,
): Promise<StartedRun> {
  const { startingTurns } = context.runState;
  const until = performance.now() + context.limits.waitMs;
  for (let { isFirstAttempt } = claim; ; isFirstAttempt = false) {
    const other = startingTurns.get(claim.request_id);
    if (other) {
      const wait = (): Promise<boolean> => resolvesWithin(other, until - performance.now());
      if (!(await withWaitPermit(context, account_id, wait))) throw idempotencyInProgress();
      continue;
    }
    const found = isFirstAttempt
      ? undefined
      : await createTurnSearch(context.store, session_id, claim).find();
    if (found) return joinTurn(context, account_id, found);
    if (startingTurns.has(claim.request_id)) continue;
    const begun = begin();
    const settled = begun.then(
      () => undefined,
      () => undefined,
    );
    startingTurns.set(claim.request_id, settled);
    try {
      return await begun;
    } catch (error) {
      if (!(error instanceof TurnAlreadyStarted)) throw error;
      return joinTurn(context, account_id, error.turn);
    } finally {
      startingTurns.delete(claim.request_id);
    }
  }
}
