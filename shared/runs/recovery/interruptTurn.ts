import type { RunningSession, SessionCommand } from '../../sessions/commands.ts';
import type { InterruptionReason } from '../../sessions/events.ts';
import { isLogUnavailable } from '../../lib/errors/turnlogError.ts';
import { isUnreadable } from '../../eventlog/reading/streamDamage.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { untilWhole } from '../../eventlog/reading/untilWhole.ts';
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
  sessionTarget,
  type LoadedSession,
} from '../../sessions/history/loadSession.ts';
import type { Instance } from '../context.ts';
import { sessionBusy } from '../queueing/sessionQueue.ts';

/** An owner may still be writing the end. */
const DEADLINE_GRACE_MS = 15_000;

export interface RecoveryContext extends HandleContext {
  instance: Pick<Instance, 'isGone' | 'isOverdue'>;
}

/**
 * True when a turn has gone on for so long that its owner has given it up, whoever that is; `now`
 * in milliseconds since the epoch.
 */
export const isPastDeadline = (deadline: string, now: number): boolean =>
  now > Date.parse(deadline) + DEADLINE_GRACE_MS;

/** Why an open turn is nobody's any more. Undefined while it may still be running. */
function orphanReason(
  { instance }: RecoveryContext,
  turn: RunningSession,
): InterruptionReason | undefined {
  if (instance.isGone(turn.owner)) return 'crash';
  return instance.isOverdue(turn) ? 'deadline' : undefined;
}

/** Interrupts the turn that a session was found with, where nobody runs it any more. */
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
 * Closes a session's open turn, whatever the read models show, if nobody runs it any more; begins
 * with `loaded` where the session was read just now.
 */
export const interruptIfOrphaned = (
  context: RecoveryContext,
  { session_id, loaded }: { session_id: string; loaded?: LoadedSession },
  bounds: WaitLimits = {},
): Promise<HandleResult<LoadedSession>> =>
  handleLoaded(
    context,
    { ...sessionTarget(session_id), preloaded: loaded },
    (found) => interruptOrphanCommand(context, found),
    { ...bounds, tooMany: sessionBusy },
  );

/** The same for a session that the read models show: it must be there. */
const interruptVisible = (
  context: RecoveryContext,
  session_id: string,
  signal: AbortSignal,
): Promise<HandleResult<LoadedSession>> =>
  untilWhole(
    context,
    sessionStream(session_id),
    {
      look: () => interruptIfOrphaned(context, { session_id }, { signal }),
      missing: ({ loaded }) => findMissingEvents(loaded),
    },
    { signal },
  );

/** A session that is in doubt takes some seconds; so many may be before any other has to wait. */
const CONCURRENCY = 16;

/**
 * Closes those of the turns, which the read models show as open, that nobody runs any more, until
 * the signal aborts. A session that can't be read, or that others write to without a pause, is left
 * alone: it must not keep the others back; a damaged one is noted, and looked at again after a
 * minute, one of a newer release is left to that, any other logged.
 */
export async function interruptOrphanedTurns(
  context: RecoveryContext & Pick<CommandContext, 'logger'>,
  turns: readonly OpenTurn[],
  signal: AbortSignal,
): Promise<void> {
  const left = turns.values();
  let away: unknown;
  const interruptNext = async (): Promise<void> => {
    for (const { session_id, turn } of left) {
      if (signal.aborted || away !== undefined) return;
      if (context.damaged.foundLately(sessionStream(session_id))) continue;
      await interruptVisible(context, session_id, signal).catch((error: unknown) => {
        if (signal.aborted || isUnreadable(error)) return;
        if (isLogUnavailable(error)) away = error;
        else
          context.logger.error(
            { err: error, session_id, turn },
            'an open turn could not be closed',
          );
      });
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, interruptNext));
  if (away !== undefined) throw away;
}
