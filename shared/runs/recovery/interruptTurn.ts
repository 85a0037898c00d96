import type { RunningSession, SessionCommand } from '../../sessions/decider.ts';
import type { InterruptionReason } from '../../sessions/events.ts';
import { isLogUnavailable } from '../../lib/errors/turnlogError.ts';
import { isUnreadable } from '../../eventlog/reading/streamDamage.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { readUntilComplete } from '../../eventlog/reading/readUntilComplete.ts';
import type { WaitLimits } from '../../lib/time/sleep.ts';
import type { OpenTurn } from '../../ports/readModels.ts';
import type { CommandContext } from '../../commandHandling/context.ts';
import {
  handleLoaded,
  type HandleContext,
  type HandleResult,
  type AuthoredCommand,
} from '../../commandHandling/handle.ts';
import {
  findMissingEvents,
  openTurnTarget,
  type LoadedSession,
} from '../../sessions/history/loadSession.ts';
import type { Instance } from '../context.ts';
import { sessionBusyError } from '../queueing/sessionQueue.ts';

/** Time after the deadline, because the owner may still be writing the end. */
const DEADLINE_GRACE_MS = 15_000;

export interface RecoveryContext extends HandleContext {
  instance: Pick<Instance, 'isGone' | 'isOverdue'>;
}

/**
 * True for a turn so long past its deadline that its owner has abandoned it. `now` in milliseconds
 * since the epoch.
 */
export const isPastDeadline = (deadline: string, now: number): boolean =>
  now > Date.parse(deadline) + DEADLINE_GRACE_MS;

/** Why no run has the open turn any more; undefined while it may still be running. */
function orphanReason(
  { instance }: RecoveryContext,
  turn: RunningSession,
): InterruptionReason | undefined {
  if (instance.isGone(turn.owner)) return 'crash';
  return instance.isOverdue(turn) ? 'deadline' : undefined;
}

/** The command that interrupts the open turn of a session, if no run has it. */
function interruptOrphanCommand(
  context: RecoveryContext,
  { state, account_id, lastEventId }: LoadedSession,
): AuthoredCommand<SessionCommand> | undefined {
  if (state.status !== 'running') return undefined;
  const reason = orphanReason(context, state);
  if (reason === undefined) return undefined;
  const recovery = { account_id: account_id!, key_id: 'system', request_id: 'recovery' };
  return {
    author: { ...recovery, causation_id: lastEventId! },
    command: { type: 'interrupt_turn', turn: state.turn, reason },
  };
}

/**
 * Closes a session's open turn if no run has it, based on the log alone. Starts with `loaded` if
 * the session was just read.
 */
export const interruptIfOrphaned = (
  context: RecoveryContext,
  { session_id, loaded }: { session_id: string; loaded?: LoadedSession },
  bounds: WaitLimits = {},
): Promise<HandleResult<LoadedSession>> =>
  handleLoaded(
    context,
    { ...openTurnTarget(session_id), preloaded: loaded },
    (session) => interruptOrphanCommand(context, session),
    { ...bounds, limitError: sessionBusyError },
  );

/** Does the same for a session in the read models, so its stream must exist. */
const interruptVisible = (
  context: RecoveryContext,
  session_id: string,
  signal: AbortSignal,
): Promise<HandleResult<LoadedSession>> =>
  readUntilComplete(
    context,
    sessionStream(session_id),
    {
      read: () => interruptIfOrphaned(context, { session_id }, { signal }),
      findFlaw: ({ loaded }) => findMissingEvents(loaded),
    },
    { signal },
  );

/** Sessions checked at a time, because checking an incomplete session takes some seconds. */
const CONCURRENCY = 16;

/**
 * Closes turns that no run has any more, until the signal aborts. Sessions that can't be read, or
 * to which others write constantly, are skipped so that they do not block the rest. Damage is
 * reported and retried after a minute, and other errors are logged. Throws `store_unavailable`.
 */
export async function interruptOrphanedTurns(
  context: RecoveryContext & Pick<CommandContext, 'logger'>,
  turns: readonly OpenTurn[],
  signal: AbortSignal,
): Promise<void> {
  const queue = turns.values();
  let unavailable: unknown;
  const interruptNext = async (): Promise<void> => {
    for (const { session_id, turn } of queue) {
      if (signal.aborted || unavailable !== undefined) return;
      if (context.damaged.wasFoundRecently(sessionStream(session_id))) continue;
      await interruptVisible(context, session_id, signal).catch((error: unknown) => {
        if (signal.aborted || isUnreadable(error)) return;
        if (isLogUnavailable(error)) unavailable = error;
        else
          context.logger.error(
            { err: error, session_id, turn },
            'an open turn could not be closed',
          );
      });
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, interruptNext));
  if (unavailable !== undefined) throw unavailable;
}
