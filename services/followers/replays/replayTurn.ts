import { addAbortListener } from 'node:events';
import type { FairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
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
import { SessionPostponed, WAIT_MS } from './sessionMemory.ts';

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

/** The turn has used up its attempts: a process died in each of them. */
export class ProcessesDied extends Error {}

/** A turn whose attempts are counted. */
export interface CountedTurn {
  actor: Actor;
  /** The session of the replay or of its judge, in which the turn is run. */
  session_id: string;
  /** The recorded turn. */
  recorded: number;
}

/** A turn to replay. */
interface TurnToRun extends CountedTurn {
  turns: ReplayedTurns;
  /** Its latest try so far. */
  earlierTry?: WholeTurn | undefined;
  budget: Pick<Budget, 'isSpent'>;
}

/** Runs the turn that `next` builds; an abort of the signal ends it. */
async function runNext(
  replaying: Pick<ReplayRunContext, 'context'>,
  { actor, session_id }: Pick<TurnToRun, 'actor' | 'session_id'>,
  next: () => Promise<RunInput>,
  signal: AbortSignal,
): Promise<void> {
  const input = await next();
  signal.throwIfAborted();
  const onAbort = (giveUp: (reason: Error) => void): (() => void) => {
    const listening = addAbortListener(signal, () => giveUp(signal.reason as Error));
    return () => listening[Symbol.dispose]();
  };
  const running = runAgent({ ...replaying.context, onClientDisconnect: onAbort }, actor, input);
  using _ = addAbortListener(
    signal,
    () => void endTurn(replaying, actor, session_id, signal.reason),
  );
  await running;
}

/**
 * Waits for a permit of each semaphore. While it waits for one, it holds none of the others, for which
 * other accounts may wait. Throws the abort reason.
 */
async function acquireAll(
  semaphores: readonly FairSemaphore[],
  { account_id, signal }: { account_id: string; signal: AbortSignal },
): Promise<Disposable> {
  const request = { account_id };
  let [awaited] = semaphores;
  for (;;) {
    using held = new DisposableStack();
    held.use(await awaited?.acquire(request, { waitMs: WAIT_MS, signal }));
    const others = semaphores.filter((semaphore) => semaphore !== awaited);
    awaited = others.find((semaphore) => !held.use(semaphore.tryAcquire(request)));
    if (!awaited) return held.move();
  }
}

type AttemptContext = Pick<ReplayRunContext, 'context' | 'attempts' | 'crashedTurns'>;

const attemptOf = ({ actor, session_id, recorded }: CountedTurn) => ({
  replay_id: actor.request_id,
  session_id,
  turn: recorded,
});

/** True for a turn that has used up its attempts. */
export const haveProcessesDied = async (
  { attempts }: Pick<ReplayRunContext, 'attempts'>,
  turn: CountedTurn,
): Promise<boolean> => (await attempts.countDeaths(attemptOf(turn))) >= LIMITS.replays.tries;

/**
 * Waits for a permit of each semaphore before an attempt, and for that of the turns in which a process
 * died if the turn is one. Throws ProcessesDied, and the abort reason.
 */
export async function acquireForAttempt(
  { context, attempts, crashedTurns }: AttemptContext,
  counted: CountedTurn,
  semaphores: readonly FairSemaphore[],
  signal: AbortSignal,
): Promise<Disposable> {
  const turn = attemptOf(counted);
  const deaths = await attempts.countDeaths(turn);
  if (deaths >= LIMITS.replays.tries) {
    const message = 'a replayed turn is given up: processes died during its attempts';
    context.logger.warn({ ...turn, deaths }, message);
    throw new ProcessesDied();
  }
  const all = deaths > 0 ? [...semaphores, crashedTurns] : semaphores;
  return acquireAll(all, { account_id: counted.actor.account_id, signal });
}

/** Notes that an attempt begins. Disposing of it notes its end, once. */
export async function openAttempt(
  { context, attempts }: AttemptContext,
  counted: CountedTurn,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  const turn = attemptOf(counted);
  let ended: Promise<void> | undefined;
  const end = (): Promise<void> =>
    (ended ??= attempts.end(turn).catch((error: unknown) => {
      const message = 'the end of an attempt could not be noted: a restart counts it as a death';
      context.logger.warn({ ...turn, ...errorSummary(error) }, message);
    }));
  await attempts.begin(turn);
  // A process that is stopped may be ended before the end of its turns is recorded.
  const stopping = addAbortListener(signal, () => void end());
  return {
    async [Symbol.asyncDispose]() {
      stopping[Symbol.dispose]();
      await end();
    },
  };
}

/** Makes one attempt of a turn. Throws ProcessesDied and BudgetSpent. */
async function attemptTurn(
  replaying: Omit<ReplayRunContext, 'compareTurn'>,
  turnToRun: TurnToRun,
  next: () => Promise<RunInput>,
  signal: AbortSignal,
): Promise<void> {
  const { semaphore, throttle } = replaying;
  using held = new DisposableStack();
  held.use(await acquireForAttempt(replaying, turnToRun, [semaphore], signal));
  held.defer(await throttle.begin(signal));
  if (turnToRun.budget.isSpent()) throw new BudgetSpent();
  await using _attempt = await openAttempt(replaying, turnToRun, signal);
  await runNext(replaying, turnToRun, next, signal);
}

/**
 * Runs a recorded turn again until it has ended for a reason that a retry does not change, and resolves
 * with the turn. `next` builds the run from the current state of the session. Throws the failure when
 * no turn could begin and waiting does not help, ProcessesDied for a turn that may be what ends the
 * process, and would do so at every start, BudgetSpent when the budget was exhausted before any try,
 * and SessionPostponed after a transient failure while others wait for memory.
 */
export async function replayTurnUntilEnded(
  replaying: Omit<ReplayRunContext, 'compareTurn'>,
  turnToRun: TurnToRun,
  next: () => Promise<RunInput>,
  signal: AbortSignal,
): Promise<WholeTurn> {
  const { logger, memory } = replaying.context;
  const { turns, recorded } = turnToRun;
  const pauses = createReplayBackoff();
  let latest = turnToRun.earlierTry;
  for (let tries = 1; ;) {
    signal.throwIfAborted();
    let failed: unknown;
    try {
      await attemptTurn(replaying, turnToRun, next, signal);
    } catch (error) {
      if (error instanceof ProcessesDied) throw error;
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
