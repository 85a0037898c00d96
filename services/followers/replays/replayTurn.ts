import { addAbortListener } from 'node:events';
import { runExclusive } from '../../../shared/lib/concurrency/keyedMutex.ts';
import type { ReplayedTurns } from '../../../shared/replays/turns/replayedTurns.ts';
import type { Budget, WholeTurn } from '../../../shared/replays/comparison/turnPair.ts';
import { cancelTurn } from '../../../shared/runs/cancelTurn.ts';
import type { RunInput } from '../../../shared/runs/runRequest.ts';
import { runAgent } from '../../../shared/runs/runAgent.ts';
import { shutdownError } from '../../../shared/runs/queueing/runsInFlight.ts';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import { isRejection } from '../../../shared/domain/rejection.ts';
import { isTurnlogError, storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import { BudgetSpent } from './budget.ts';
import { createReplayBackoff, isTransientFailure } from './transientFailures.ts';
import { ReplayCancelled, type ReplayRunContext } from './replayContext.ts';
import { SessionPostponed, WAIT_MS } from './sessionPlace.ts';

/** Ends the running turn. For a cancelled replay it is cancelled; otherwise a process begins it again. */
async function endTurn(
  { context }: Pick<ReplayRunContext, 'context'>,
  actor: Actor,
  session_id: string,
  reason: unknown,
): Promise<void> {
  if (reason instanceof ReplayCancelled)
    await cancelTurn(context, actor, { session_id }).catch((error: unknown) =>
      context.logger.debug(
        errorSummary(error),
        'a turn of a cancelled replay could not be cancelled',
      ),
    );
  context.runState.runsInFlight.interruptMatching(
    (subject) => subject.session_id === session_id,
    shutdownError(),
  );
}

/** A turn to replay. */
interface TurnToRun {
  actor: Actor;
  turns: ReplayedTurns;
  /** The recorded turn. */
  recorded: number;
  /** Its latest try so far. */
  earlierTry?: WholeTurn | undefined;
  budget: Pick<Budget, 'isSpent'>;
}

/** Runs a turn once; an abort of the signal ends the turn. Throws BudgetSpent. */
async function runOnce(
  replaying: Omit<ReplayRunContext, 'compareTurn'>,
  { actor, budget }: Pick<TurnToRun, 'actor' | 'budget'>,
  input: RunInput,
  signal: AbortSignal,
): Promise<void> {
  const { context, semaphore, throttle } = replaying;
  const { account_id } = actor;
  const session_id = input.session_id!;
  const permit = await semaphore.acquire({ account_id, bytes: 0 }, { waitMs: WAIT_MS, signal });
  try {
    const onEnded = await throttle.begin(signal);
    if (budget.isSpent()) {
      onEnded();
      throw new BudgetSpent();
    }
    const onAbort = (giveUp: (reason: Error) => void): (() => void) => {
      const listening = addAbortListener(signal, () => giveUp(signal.reason as Error));
      return () => listening[Symbol.dispose]();
    };
    const running = runAgent({ ...context, onClientDisconnect: onAbort }, actor, input).finally(
      onEnded,
    );
    using _ = addAbortListener(
      signal,
      () => void endTurn(replaying, actor, session_id, signal.reason),
    );
    await running;
  } finally {
    permit.release();
  }
}

/**
 * Runs a recorded turn again until it has ended for a reason that a retry does not change, and resolves
 * with the turn. A turn in which several processes died is not run again: it may be what ends them, and
 * would do so at every start. `next` builds the run from the current state of the session. Throws the
 * failure when no turn could begin and waiting does not help, BudgetSpent when the budget was exhausted
 * before any try, and SessionPostponed after a transient failure while others wait for memory.
 */
export async function replayTurnUntilEnded(
  replaying: Omit<ReplayRunContext, 'compareTurn'>,
  turnToRun: TurnToRun,
  next: () => Promise<RunInput>,
  signal: AbortSignal,
): Promise<WholeTurn> {
  const { semaphore } = replaying;
  const { logger, memory } = replaying.context;
  const { actor, turns, recorded } = turnToRun;
  const pauses = createReplayBackoff();
  let latest = turnToRun.earlierTry;
  const crashes = latest ? turns.crashes(recorded) : 0;
  if (crashes >= LIMITS.replays.tries) {
    const failure = { replay_id: actor.request_id, turn: recorded, crashes };
    logger.warn(failure, 'a replayed turn is not run again: processes died during its attempts');
    return latest!;
  }
  const runNext = async () => runOnce(replaying, turnToRun, await next(), signal);
  // One after another: the next crash then counts for one of the turns that were open in the last one.
  const attempt = () => (crashes > 0 ? runExclusive(semaphore, 'crashed', runNext) : runNext());
  for (let tries = 1; ;) {
    signal.throwIfAborted();
    let failed: unknown;
    try {
      await attempt();
    } catch (error) {
      failed = error;
    }
    const last = await turns.lastTry(recorded).catch((error: unknown) => {
      if (!isTransientFailure(error)) throw error;
      failed ??= error;
      return undefined;
    });
    latest = last ?? latest;
    if (latest?.end?.type === 'session.turn_completed.v1') return latest;
    signal.throwIfAborted();
    if (failed instanceof BudgetSpent && latest) return latest;
    // A follower node may not have the turn yet.
    failed ??= storeUnavailableError('The replayed turn cannot be read yet.');
    if (!isTransientFailure(failed)) {
      const wasMoved = isRejection(failed, 'session_moved');
      const isRetried = wasMoved || (isTurnlogError(failed) && failed.retriable);
      if (!isRetried || tries >= LIMITS.replays.tries) {
        if (last) return last;
        throw failed;
      }
      tries += 1;
    } else if (memory.hasWaiters('replays'))
      throw new SessionPostponed('Others wait for the memory.', { cause: failed });
    logger.debug(errorSummary(failed), 'retrying the replay of a turn');
    await sleep(pauses.next(), signal);
  }
}
