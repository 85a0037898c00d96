import type { SessionState } from '../../domain/session/decider.ts';
import type { InterruptionReason } from '../../domain/session/events.ts';
import { isTurnlogError } from '../../errors.ts';
import { createConflictLimit } from '../../eventlog/conflictLimit.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { untilWhole } from '../../eventlog/untilWhole.ts';
import type { OpenTurn } from '../../ports/readModels.ts';
import type { RunContext } from '../run/context.ts';
import { loadSession, type LoadedSession } from '../run/loadSession.ts';
import { record } from '../run/record.ts';
import { eventsGone } from '../run/sessionOfRun.ts';
import { sessionBusy } from '../run/sessionQueue.ts';

/** Clocks of instances differ, and an owner may still be writing the end. */
const DEADLINE_GRACE_MS = 15_000;

export type OrphanContext = Pick<RunContext, 'store' | 'damaged' | 'ids' | 'clock' | 'isGone'>;

/** True when a turn has gone on for so long that its owner has given it up, whoever that is. */
export const isOverdue = ({ clock }: Pick<RunContext, 'clock'>, deadline: string): boolean =>
  clock.now() > Date.parse(deadline) + DEADLINE_GRACE_MS;

/** Why an open turn is nobody's any more. Undefined while it may still be running. */
function orphanedBy(
  context: OrphanContext,
  { owner, deadline }: Extract<SessionState, { status: 'running' }>,
): InterruptionReason | undefined {
  if (context.isGone(owner)) return 'crash';
  return isOverdue(context, deadline) ? 'deadline' : undefined;
}

/**
 * Closes a session's open turn, as it was loaded, if nobody runs it any more. `idle` where no turn is open,
 * `running` while it may still run elsewhere; `moved` when the session has gone on since it was loaded, perhaps by the turn's end.
 * Errors: `store_unavailable`.
 */
export async function closeOrphan(
  context: OrphanContext,
  session_id: string,
  { state, head, lastEventId, account_id }: LoadedSession,
): Promise<'idle' | 'closed' | 'running' | 'moved'> {
  if (state.status !== 'running') return 'idle';
  const reason = orphanedBy(context, state);
  if (!reason) return 'running';
  const author = {
    account_id: account_id!,
    key_id: 'system',
    request_id: 'recovery',
    causation_id: lastEventId!,
  };
  try {
    await record(
      context,
      author,
      { session_id, state, head },
      { type: 'interrupt_turn', turn: state.turn, reason },
    );
    return 'closed';
  } catch (error) {
    if (!isTurnlogError(error, 'stream_conflict')) throw error;
    return 'moved';
  }
}

/**
 * Closes a session's open turn, whatever the read models show, if nobody runs it any more. Resolves with the
 * session as it was last loaded.
 * Errors: `session_busy` where others write to it without a pause, `stream_damaged` (noted),
 * `store_unavailable`, the signal's reason.
 */
export async function interruptIfOrphaned(
  context: OrphanContext,
  session_id: string,
  signal?: AbortSignal,
): Promise<LoadedSession> {
  const conflicts = createConflictLimit(context, sessionStream(session_id), {
    signal,
    tooMany: sessionBusy,
  });
  for (;;) {
    const loaded = await loadSession(context, session_id, () => Promise.resolve([]));
    signal?.throwIfAborted();
    if ((await closeOrphan(context, session_id, loaded)) !== 'moved') return loaded;
    await conflicts.lost(loaded.head.revision);
  }
}

/** The same for a session that the read models show: it must be there. */
const interruptShown = (
  context: OrphanContext,
  session_id: string,
  signal: AbortSignal,
): Promise<LoadedSession> =>
  untilWhole(
    context,
    sessionStream(session_id),
    { look: () => interruptIfOrphaned(context, session_id, signal), missing: eventsGone },
    { signal },
  );

/** A session that is in doubt takes some seconds; so many may be before any other has to wait. */
const TOGETHER = 16;

/**
 * Closes those of the turns, which the read models show as open, that nobody runs any more, until the signal
 * aborts. A session that can't be read, or that others write to without a pause, is left alone: it must not keep
 * the others back; a damaged one is noted, and looked at again after a minute, any other logged.
 * Errors: `store_unavailable`.
 */
export async function interruptOrphans(
  context: OrphanContext & Pick<RunContext, 'logger'>,
  turns: readonly OpenTurn[],
  signal: AbortSignal,
): Promise<void> {
  const left = turns.values();
  let away: unknown;
  const interruptNext = async (): Promise<void> => {
    for (const { session_id, turn } of left) {
      if (signal.aborted || away !== undefined) return;
      if (context.damaged.foundLately(sessionStream(session_id))) continue;
      await interruptShown(context, session_id, signal).catch((error: unknown) => {
        if (signal.aborted || isTurnlogError(error, 'stream_damaged')) return;
        if (isTurnlogError(error, 'store_unavailable')) away = error;
        else
          context.logger.error(
            { err: error, session_id, turn },
            'an open turn could not be closed',
          );
      });
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, interruptNext));
  if (away !== undefined) throw away;
}
