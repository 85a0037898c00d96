import { sessionErasedError } from '../erasure/errors.ts';
import type { SessionCommand } from '../sessions/commands.ts';
import type { Reserved } from '../requests/events.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { readUntilComplete } from '../eventlog/reading/untilWhole.ts';
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
  sessionTarget,
  type LoadedSession,
} from '../sessions/history/loadSession.ts';
import type { RunSlice } from './context.ts';
import { sessionBusy } from './queueing/sessionQueue.ts';
import type { TurnRef } from './queueing/turnWatch.ts';

type OwnerSource = Parameters<typeof requireSessionOwner>[0];

type CancelContext = HandleContext &
  VisibilityContext &
  OwnerSource &
  TurnSource &
  RunSlice<'onIdempotentReplay', 'turnWatch'>;

/** What is to be cancelled: the turn of that number, or the open one. */
export type Cancellation = Pick<TurnRef, 'session_id'> & Partial<Pick<TurnRef, 'turn'>>;

/** How the turn has ended, whoever ended it. */
export interface CancelledTurn extends TurnRef {
  status: Exclude<TurnRow['status'], 'running'>;
  /** True where it was cancelled, now or before. */
  cancelled: boolean;
}

/** The end of the turn is in the log, whoever appended it. */
type EndedTurn = HandleResult<LoadedSession> & { turn: number };

/**
 * Appends the end of the turn that is meant, if it is open. The first look decides which one that
 * is: one that begins later is never hit.
 */
async function recordCancellation(
  context: HandleContext,
  actor: Actor,
  { session_id, turn }: Cancellation,
): Promise<EndedTurn> {
  let meant = turn;
  function order({ state }: LoadedSession): AuthoredCommand<SessionCommand> | undefined {
    if (state.status === 'erased') throw sessionErasedError();
    if (state.status === 'none') return undefined;
    meant ??= state.turn;
    if (state.status !== 'running' || state.turn !== meant) return undefined;
    return {
      author: authorOf(actor),
      command: { type: 'interrupt_turn', turn: meant, reason: 'cancelled' },
    };
  }
  const handled = await readUntilComplete(context, sessionStream(session_id), {
    read: () =>
      handleLoaded(context, sessionTarget(session_id), order, { limitError: sessionBusy }),
    findFlaw: ({ loaded }) => findMissingEvents(loaded),
  });
  return { ...handled, turn: meant! };
}

/**
 * What the first try of a cancellation fixes: the turn that it is about, so that a later try can hit
 * no later one. Errors: `session_not_found`, and those of reading the session.
 */
export async function reserveCancellation(
  context: HandleContext & OwnerSource,
  actor: Actor,
  { session_id, turn }: Cancellation,
): Promise<Reserved> {
  await requireSessionOwner(context, actor.account_id, session_id);
  if (turn !== undefined) return { turn };
  // A node that shows nothing yet must not leave the turn open to be chosen by a later try.
  const { state } = await readUntilComplete(context, sessionStream(session_id), {
    read: () => sessionTarget(session_id).load(context),
    findFlaw: findMissingEvents,
  });
  return 'turn' in state ? { turn: state.turn } : {};
}

/**
 * Cancels the open turn of a session, whichever process runs it: its end is recorded at once, and
 * the run, which nothing that it says later can follow, is told to stop. Where the turn has ended
 * already nothing changes, and its end is told.
 * Errors: `session_not_found`, `turn_not_found`, `session_erased`, `origin_erased` of a turn that a fork
 * shares, `session_busy` where others write to the session without a pause, `stream_damaged` (noted), `release_too_old`, `key_missing`,
 * `store_unavailable`.
 */
export async function cancelTurn(
  context: CancelContext,
  actor: Actor,
  { session_id, claim, turn: asked = claim?.reserved.turn }: Cancellation & { claim?: Claim },
): Promise<CancelledTurn> {
  await requireSessionOwner(context, actor.account_id, session_id);
  const meant = { session_id, ...(asked !== undefined && { turn: asked }) };
  const { turn, appended } = await recordCancellation(context, actor, meant);
  const name = { session_id, turn };
  if (!appended) {
    if (claim?.isFirstAttempt === false) context.onIdempotentReplay?.();
    const { status, error } = await readTurn(context, { account_id: actor.account_id, ...name });
    if (status === 'running')
      throw new TurnlogError('session_busy', 'The turn has begun only now. Try again.', {
        retriable: true,
        retryAfterSeconds: 1,
      });
    return { ...name, status, cancelled: status === 'interrupted' && error?.code === 'cancelled' };
  }
  const { turnWatch } = context.runState;
  turnWatch.notifyEnded(name, 'cancelled');
  turnWatch.notifyOthers(session_id);
  await waitUntilTurnVisible(context, appended.position);
  return { ...name, status: 'interrupted', cancelled: true };
}
