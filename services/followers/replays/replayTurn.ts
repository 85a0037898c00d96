import { addAbortListener } from 'node:events';
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

/** However long the line is, whoever waits in it is let in or stopped. */
const WAIT_MS = 2 ** 31 - 1;

/** Ends the turn that runs: a replay that was cancelled says so; else somebody begins it again. */
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
        'a turn of a cancelled replay was not there to cancel',
      ),
    );
  context.runState.runsInFlight.interruptMatching(
    (subject) => subject.session_id === session_id,
    shutdownError(),
  );
}

/** A turn that is to be run again. */
interface TurnToRun {
  actor: Actor;
  turns: ReplayedTurns;
  /** The recorded turn. */
  recorded: number;
  /** Its last try that was made before. */
  made?: WholeTurn | undefined;
  budget: Pick<Budget, 'isSpent'>;
}

/** The run of a turn; the signal ends it, and its turn. Errors: those of runAgent, BudgetSpent. */
async function runOnce(
  replaying: Omit<ReplayRunContext, 'compareTurn'>,
  { actor, budget }: Pick<TurnToRun, 'actor' | 'budget'>,
  input: RunInput,
  signal: AbortSignal,
): Promise<void> {
  const { context, semaphore: line, throttle: pace } = replaying;
  const { account_id } = actor;
  const session_id = input.session_id!;
  const place = await line.acquire({ account_id, bytes: 0 }, { waitMs: WAIT_MS, signal });
  try {
    const ended = await pace.begin(signal);
    if (budget.isSpent()) {
      ended();
      throw new BudgetSpent();
    }
    const whenLeft = (giveUp: (reason: Error) => void): (() => void) => {
      const listening = addAbortListener(signal, () => giveUp(signal.reason as Error));
      return () => listening[Symbol.dispose]();
    };
    const running = runAgent({ ...context, onClientDisconnect: whenLeft }, actor, input).finally(
      ended,
    );
    using _ = addAbortListener(
      signal,
      () => void endTurn(replaying, actor, session_id, signal.reason),
    );
    await running;
  } finally {
    place.release();
  }
}

/**
 * Runs a recorded turn again until it has ended for a reason of its own, and resolves with the turn.
 * `next` makes the run, which goes on where the session is by then.
 * Errors: those for which no turn could begin and that no waiting mends, BudgetSpent where the tokens
 * were used before any try, the signal's reason.
 */
export async function replayTurnUntilEnded(
  replaying: Omit<ReplayRunContext, 'compareTurn'>,
  toRun: TurnToRun,
  next: () => Promise<RunInput>,
  signal: AbortSignal,
): Promise<WholeTurn> {
  const { logger } = replaying.context;
  const { turns, recorded } = toRun;
  const pauses = createReplayBackoff();
  let seen = toRun.made;
  for (let tries = 1; ;) {
    signal.throwIfAborted();
    let failed: unknown;
    try {
      await runOnce(replaying, toRun, await next(), signal);
    } catch (error) {
      failed = error;
    }
    const last = await turns.lastTry(recorded).catch((error: unknown) => {
      if (!isTransientFailure(error)) throw error;
      failed ??= error;
      return undefined;
    });
    seen = last ?? seen;
    if (seen?.end?.type === 'session.turn_completed.v1') return seen;
    signal.throwIfAborted();
    if (failed instanceof BudgetSpent && seen) return seen;
    // A node that follows the others may not have it yet.
    failed ??= storeUnavailableError('The turn that was replayed can not be read yet.');
    if (!isTransientFailure(failed)) {
      const isOurs = isRejection(failed, 'session_moved');
      const again = isOurs || (isTurnlogError(failed) && failed.retriable);
      if (!again || tries >= LIMITS.replays.tries) {
        if (last) return last;
        throw failed;
      }
      tries += 1;
    }
    logger.debug(errorSummary(failed), 'a turn is replayed once more');
    await sleep(pauses.next(), signal);
  }
}
