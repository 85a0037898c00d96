import type { Position } from '../ports/eventStore.ts';
import { resolvesWithin } from '../lib/time/resolvesWithin.ts';
import { untilTurnShown } from '../commandHandling/context.ts';
import { idempotencyInProgress, type Claim } from '../requests/claim.ts';
import type { RunContext } from './context.ts';
import { createTurnSearch, TurnBegunBefore, type FoundTurn } from './findTurn.ts';
import { recordedEnd } from './queueing/recordedEnd.ts';
import type { RecordedEnd, RunResult } from './runResult.ts';

/** A run whose turn has begun. It goes on and is recorded, whoever waits for its end. */
export interface BegunRun {
  session_id: string;
  turn: number;
  /** Where its beginning stands in the log. */
  position: Position;
  /** Errors: those of runAgent. */
  readonly ended: Promise<RunResult>;
  /**
   * Where another try of the request began the turn: the same, for who waits so many milliseconds
   * for the end. Errors: `idempotency_in_progress`, those of `ended`.
   */
  endedWithin?: (waitMs: number) => Promise<RunResult>;
}

/** The longest that an answer waits for a turn of another try beyond the time that a run may take. */
const AFTERWARDS_MS = 30_000;

/** However many tries wait for a turn, one looks for its end. */
function endOf(context: RunContext, found: FoundTurn): Promise<RecordedEnd> {
  const { ending } = context.sessions;
  const name = `${found.session_id} ${found.turn}`;
  const known = ending.get(name);
  if (known) return known;
  const until = performance.now() + context.limits.timeoutMs + AFTERWARDS_MS;
  const looking = recordedEnd(context, found, until).finally(() => ending.delete(name));
  ending.set(name, looking);
  return looking;
}

/** What the turn is answered with, once reads show it. */
async function answerOf(
  context: RunContext,
  found: FoundTurn,
  waitMs = Infinity,
): Promise<RunResult> {
  const end = endOf(context, found);
  if (waitMs < Infinity && !(await resolvesWithin(end, waitMs))) throw idempotencyInProgress();
  const { answer, position } = await end;
  context.onReplayed?.();
  await untilTurnShown(context, position);
  if (answer instanceof Error) throw answer;
  return answer;
}

/** Takes one of the places of those who wait for turns. Errors: `rate_limited`, `overloaded`, those of the wait. */
async function inPlace<Result>(
  { sessions }: RunContext,
  account_id: string,
  wait: () => Promise<Result>,
): Promise<Result> {
  const place = sessions.waits.acquire({ account_id, bytes: 0 });
  try {
    return await wait();
  } finally {
    place.release();
  }
}

function begunBefore(context: RunContext, account_id: string, found: FoundTurn): BegunRun {
  const { session_id, turn, position } = found;
  let ended: Promise<RunResult> | undefined;
  return {
    session_id,
    turn,
    position,
    endedWithin: (waitMs) => inPlace(context, account_id, () => answerOf(context, found, waitMs)),
    get ended() {
      context.onReplayed?.();
      return (ended ??= answerOf(context, found));
    },
  };
}

/**
 * Begins the turn of a request, unless a try of it has: then gives that one. Of tries in this
 * process one is at it, and the others wait until that has begun, or has given up; of tries
 * elsewhere the session's stream takes one.
 * Errors: `idempotency_in_progress`, `rate_limited` and `overloaded` where too many wait, those of
 * `begin`.
 */
export async function beginOnce(
  context: RunContext,
  { account_id, session_id, claim }: { account_id: string; session_id: string; claim: Claim },
  begin: () => Promise<BegunRun>,
): Promise<BegunRun> {
  const { beginning } = context.sessions;
  const until = performance.now() + context.limits.waitMs;
  for (let { first } = claim; ; first = false) {
    const other = beginning.get(claim.request_id);
    if (other) {
      const wait = (): Promise<boolean> => resolvesWithin(other, until - performance.now());
      if (!(await inPlace(context, account_id, wait))) throw idempotencyInProgress();
      continue;
    }
    const found = first
      ? undefined
      : await createTurnSearch(context.store, session_id, claim).find();
    if (found) return begunBefore(context, account_id, found);
    if (beginning.has(claim.request_id)) continue;
    const begun = begin();
    const settled = begun.then(
      () => undefined,
      () => undefined,
    );
    beginning.set(claim.request_id, settled);
    try {
      return await begun;
    } catch (error) {
      if (!(error instanceof TurnBegunBefore)) throw error;
      return begunBefore(context, account_id, error.found);
    } finally {
      beginning.delete(claim.request_id);
    }
  }
}
