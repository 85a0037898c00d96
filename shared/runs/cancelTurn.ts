import { sessionErasedError } from '../erasure/errors.ts';
import type { SessionCommand } from '../sessions/decider.ts';
import type { Reserved } from '../requests/events.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { readUntilComplete } from '../eventlog/reading/readUntilComplete.ts';
import { readTurn, requireSessionOwner, type TurnSource } from '../sessions/turns/turn.ts';
import type { TurnRow } from '../readModels/tables.ts';
import {
  waitUntilTurnVisible,
  type Actor,
  type VisibilityContext,
} from '../commandHandling/context.ts';
import type { Claim } from '../requests/idempotency.ts';
import { authorOf } from '../commandHandling/prepareEvents.ts';
import {
  handleLoaded,
  type HandleContext,
  type HandleResult,
  type AuthoredCommand,
} from '../commandHandling/handle.ts';
import {
  findMissingEvents,
  openTurnTarget,
  type LoadedSession,
} from '../sessions/history/loadSession.ts';
import type { RunSlice } from './context.ts';
import { sessionBusyError } from './queueing/sessionQueue.ts';
import type { TurnRef } from './queueing/turnWatch.ts';

type OwnerSource = Parameters<typeof requireSessionOwner>[0];

type CancelContext = HandleContext &
  VisibilityContext &
  OwnerSource &
  TurnSource &
  RunSlice<'onIdempotentReplay' | 'instance', 'turnWatch'>;

/** The turn to cancel: the one with this number, or the open one. */
type Cancellation = Pick<TurnRef, 'session_id'> & Partial<Pick<TurnRef, 'turn'>>;

/** The end of the turn, by this cancellation or before it. */
interface CancelledTurn extends TurnRef {
  status: Exclude<TurnRow['status'], 'running'>;
  /** True if the turn was cancelled, now or earlier. */
  cancelled: boolean;
}

/** A turn with a recorded end. */
type EndedTurn = HandleResult<LoadedSession> & { turn: number };

/**
 * Appends the end of the turn, if it is open. The first read determines the turn, so that a later
 * turn is never cancelled.
 */
async function recordCancellation(
  context: HandleContext,
  actor: Actor,
  { session_id, turn }: Cancellation,
): Promise<EndedTurn> {
  let target = turn;
  function interruptCommand({ state }: LoadedSession): AuthoredCommand<SessionCommand> | undefined {
    if (state.status === 'erased') throw sessionErasedError();
    if (state.status === 'none') return undefined;
    target ??= state.turn;
    if (state.status !== 'running' || state.turn !== target) return undefined;
    return {
      author: authorOf(actor),
      command: { type: 'interrupt_turn', turn: target, reason: 'cancelled' },
    };
  }
  const result = await readUntilComplete(context, sessionStream(session_id), {
    read: () =>
      handleLoaded(context, openTurnTarget(session_id), interruptCommand, {
        limitError: sessionBusyError,
      }),
    findFlaw: ({ loaded }) => findMissingEvents(loaded),
  });
  return { ...result, turn: target! };
}

/** The other process that runs the turn, as far as is known. */
async function findOtherOwner(
  context: Pick<CancelContext, 'instance'> & HandleContext,
  { session_id, turn }: Cancellation,
): Promise<string | undefined> {
  const { state } = await openTurnTarget(session_id).load(context);
  if (state.status !== 'running' || state.turn !== turn) return undefined;
  return context.instance.isGone(state.owner) ? undefined : state.owner;
}

/**
 * Reads the turn that the first attempt of a cancellation reserves, so that a later attempt can't
 * cancel a later turn. Errors: `session_not_found`, and those of reading the session.
 */
export async function reserveCancellation(
  context: HandleContext & OwnerSource,
  actor: Actor,
  { session_id, turn }: Cancellation,
): Promise<Reserved> {
  await requireSessionOwner(context, actor.account_id, session_id);
  if (turn !== undefined) return { turn };
  // Without this wait, a lagging cluster node could lead a later attempt to another turn.
  const { state } = await readUntilComplete(context, sessionStream(session_id), {
    read: () => openTurnTarget(session_id).load(context),
    findFlaw: findMissingEvents,
  });
  return 'turn' in state ? { turn: state.turn } : {};
}

/**
 * Cancels the open turn of a session, in whichever process it runs. The run is interrupted, and
 * records its ended tool calls first, unless its process can't be reached. Returns the recorded end
 * of a turn that has already ended. Errors: `session_not_found`, `turn_not_found`,
 * `session_erased`, `origin_erased` for a turn shared by a fork, `session_busy` under constant
 * writes to the session, `stream_damaged`, `release_too_old`, `key_missing`, `store_unavailable`.
 */
export async function cancelTurn(
  context: CancelContext,
  actor: Actor,
  {
    session_id,
    claim,
    turn: requestedTurn = claim?.reserved.turn,
  }: Cancellation & { claim?: Claim },
): Promise<CancelledTurn> {
  // The turn of a run in this process may have been ended by another, and be followed by others.
  const target = {
    session_id,
    ...(await reserveCancellation(context, actor, {
      session_id,
      ...(requestedTurn !== undefined && { turn: requestedTurn }),
    })),
  };
  const { turnWatch } = context.runState;
  const { turn, appended } = await turnWatch.endTurn(target, {
    findOwner: () => findOtherOwner(context, target),
    recordEnd: () => recordCancellation(context, actor, target),
  });
  const ref = { session_id, turn };
  if (!appended) {
    if (claim?.isFirstAttempt === false) context.onIdempotentReplay?.();
    const { status, error } = await readTurn(context, { account_id: actor.account_id, ...ref });
    if (status === 'running')
      throw new TurnlogError('session_busy', 'The turn has only just started. Try again.', {
        retriable: true,
        retryAfterSeconds: 1,
      });
    return { ...ref, status, cancelled: status === 'interrupted' && error?.code === 'cancelled' };
  }
  turnWatch.notifyEnded(ref, 'cancelled');
  turnWatch.notifyOthers(session_id);
  const { account_id } = actor;
  await waitUntilTurnVisible(context, { position: appended.position, account_id, session_id });
  return { ...ref, status: 'interrupted', cancelled: true };
}
