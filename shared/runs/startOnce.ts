import type { Position } from '../ports/eventStore.ts';
import { resolvesWithin } from '../lib/time/resolvesWithin.ts';
import {
  resumeFairly,
  waitUntilTurnVisible,
  type VisibilityContext,
} from '../commandHandling/context.ts';
import { idempotencyInProgressError, type Claim } from '../requests/idempotency.ts';
import type { RunContext, RunSlice } from './context.ts';
import { createTurnSearch, TurnAlreadyStarted, type RequestTurn } from './turnSearch.ts';
import { type RecordedResult, type RunResult, toRunResult } from './runResult.ts';
import { createBackoff } from '../lib/time/backoff.ts';
import { sessionErasedError } from '../erasure/errors.ts';
import type { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { createReadReservation } from '../eventlog/reading/readMemory.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { DecodedEvent } from '../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../limits.ts';
import { sleep } from '../lib/time/sleep.ts';
import { interruptIfOrphaned, type RecoveryContext } from './recovery/interruptTurn.ts';
import { failedTurn, interruptedTurn, turnFailureError } from '../sessions/turns/turnFailure.ts';

/** Dependencies of waiting for a turn of another attempt. */
type JoinContext = RecoveryContext &
  VisibilityContext &
  RunSlice<'instance' | 'limits' | 'memory' | 'onIdempotentReplay', 'turnEndLookups' | 'turnWaits'>;

const PAGE = 32;
const PAUSES = { firstMs: 10, longestMs: 250 };
/** Interval between checks that the owner of the turn is alive. */
const ORPHAN_CHECK_INTERVAL_MS = 2_000;

/**
 * The response for a turn with this end, the same for every attempt. A recorded failure has no time
 * to wait: sent again, the request gets the same failure.
 */
function recordedAnswer(
  { session_id, turn, context }: RequestTurn,
  { event, recorded }: DecodedEvent,
): RunResult | Error {
  if (event.type === 'session.erased.v1' || recorded.erased) return sessionErasedError();
  if (event.type === 'session.turn_completed.v1')
    return toRunResult(session_id, event.data, context);
  if (event.type === 'session.turn_failed.v1')
    return turnFailureError(failedTurn(event.data), { session_id, turn });
  const isInterrupted = event.type === 'session.turn_interrupted.v1';
  const why = isInterrupted ? (event.data.cause ?? event.data.reason) : 'crash';
  return turnFailureError(interruptedTurn(why), { session_id, turn });
}

const turnStillRunsError = ({ session_id, turn }: RequestTurn): TurnlogError =>
  idempotencyInProgressError().withTurn({ session_id, turn });

const TURN_END_TYPES: ReadonlySet<string> = new Set([
  'session.turn_completed.v1',
  'session.turn_failed.v1',
  'session.turn_interrupted.v1',
  'session.erased.v1',
]);

/** Each call reads the events since the previous call, up to the end of the turn. */
function createEndReader(context: StreamSource, { session_id, revision }: RequestTurn) {
  let from = revision;
  return async (): Promise<DecodedEvent | undefined> => {
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
 * Waits for the end of a turn that another attempt started, and closes the turn if no run has it.
 * Throws `idempotency_in_progress` at `until`, in milliseconds of `performance.now()`.
 */
async function waitForRecordedResult(
  context: RecoveryContext & Pick<RunContext, 'instance'>,
  turn: RequestTurn,
  until: number,
): Promise<RecordedResult> {
  const { session_id, owner } = turn;
  const readEnd = createEndReader(context, turn);
  const pauses = createBackoff(PAUSES);
  let checkedAt = -Infinity;
  for (;;) {
    const end = await readEnd();
    if (end) return { answer: recordedAnswer(turn, end), position: end.recorded.position };
    const now = performance.now();
    // This process closes its turns itself.
    if (owner !== context.instance.id && now - checkedAt > ORPHAN_CHECK_INTERVAL_MS) {
      checkedAt = now;
      await interruptIfOrphaned(context, { session_id }, { until });
    }
    const pauseMs = pauses.next();
    if (now + pauseMs > until) throw turnStillRunsError(turn);
    await sleep(pauseMs);
  }
}

/** A run whose turn has started. It continues and is recorded even if no client waits. */
export interface StartedRun {
  session_id: string;
  turn: number;
  /** Position of its turn_started event. */
  position: Position;
  readonly result: Promise<RunResult>;
  /**
   * Present if another attempt of the request started the turn. Like `result`, but throws
   * `idempotency_in_progress` after `waitMs`.
   */
  resultWithin?: (waitMs: number) => Promise<RunResult>;
}

/**
 * How long an attempt waits for the turn of another attempt, in addition to the time limit of a
 * run.
 */
const EXTRA_WAIT_MS = 30_000;

/** Finds the end of a turn. All attempts that wait for a turn share one search. */
function findSharedEnd(
  context: JoinContext,
  account_id: string,
  turn: RequestTurn,
): Promise<RecordedResult> {
  const { turnEndLookups } = context.runState;
  const key = `${turn.session_id} ${turn.turn}`;
  const current = turnEndLookups.get(key);
  if (current) return current;
  const until = performance.now() + context.limits.timeoutMs + EXTRA_WAIT_MS;
  // The attempt whose search it is may lose its client.
  const reserveRead = createReadReservation(context.memory, account_id);
  const source = { ...context, reserveRead, waitLimits: { until } };
  const lookup = waitForRecordedResult(source, turn, until).finally(() =>
    turnEndLookups.delete(key),
  );
  turnEndLookups.set(key, lookup);
  return lookup;
}

/** A turn of another attempt, and the account that waits for it. */
interface JoinedTurn {
  account_id: string;
  turn: RequestTurn;
}

/** The response for the turn, once reads show its end. */
async function waitForResult(
  context: JoinContext,
  { account_id, turn }: JoinedTurn,
  waitMs = Infinity,
): Promise<RunResult> {
  const end = findSharedEnd(context, account_id, turn);
  if (waitMs < Infinity && !(await resolvesWithin(end, waitMs))) throw turnStillRunsError(turn);
  const { answer, position } = await end;
  await resumeFairly(context);
  context.onIdempotentReplay?.();
  const { session_id } = turn;
  await waitUntilTurnVisible(context, { position, account_id, session_id });
  if (answer instanceof Error) throw answer;
  return answer;
}

function joinTurn(context: JoinContext, account_id: string, started: RequestTurn): StartedRun {
  const { session_id, turn, position } = started;
  const joined = { account_id, turn: started };
  let result: Promise<RunResult> | undefined;
  return {
    session_id,
    turn,
    position,
    async resultWithin(waitMs) {
      using _permit = context.runState.turnWaits.acquire({ account_id });
      return await waitForResult(context, joined, waitMs);
    },
    get result() {
      context.onIdempotentReplay?.();
      if (!result) {
        result = waitForResult(context, joined);
        // The caller may await the result later, or never.
        result.catch(() => undefined);
      }
      return result;
    },
  };
}

/**
 * Starts the turn of a request, or joins the turn that another attempt started. In this process,
 * attempts start turns one at a time. Across processes, the session's stream accepts only one.
 */
export async function startOnce(
  context: JoinContext & RunSlice<'store', 'startingTurns' | 'turnSearches'>,
  { account_id, session_id, claim }: { account_id: string; session_id: string; claim: Claim },
  start: () => Promise<StartedRun>,
): Promise<StartedRun> {
  const { startingTurns, turnWaits } = context.runState;
  const until = performance.now() + context.limits.waitMs;
  for (let { isFirstAttempt } = claim; ; isFirstAttempt = false) {
    const startingTurn = startingTurns.get(claim.request_id);
    if (startingTurn) {
      using _permit = turnWaits.acquire({ account_id });
      if (!(await resolvesWithin(startingTurn, until - performance.now())))
        throw idempotencyInProgressError();
      await resumeFairly(context);
      continue;
    }
    const earlier = isFirstAttempt
      ? undefined
      : await createTurnSearch(context, { account_id, session_id, claim }).find({ until });
    if (earlier) return joinTurn(context, account_id, earlier);
    if (startingTurns.has(claim.request_id)) continue;
    const starting = start();
    const settled = starting.then(
      () => undefined,
      () => undefined,
    );
    startingTurns.set(claim.request_id, settled);
    try {
      return await starting;
    } catch (error) {
      if (!(error instanceof TurnAlreadyStarted)) throw error;
      return joinTurn(context, account_id, error.turn);
    } finally {
      startingTurns.delete(claim.request_id);
    }
  }
}
