import type { SessionState } from '../../domain/session/decider.ts';
import type { InterruptionReason } from '../../domain/session/events.ts';
import { isTurnlogError } from '../../errors.ts';
import type { OpenTurn } from '../../ports/readModels.ts';
import type { RunContext } from './context.ts';
import { loadSession, type LoadedSession } from './loadSession.ts';
import { record } from './record.ts';

/** Clocks of instances differ, and an owner may still be writing the end. */
const DEADLINE_GRACE_MS = 15_000;

export type OrphanContext = Pick<RunContext, 'store' | 'ids' | 'clock' | 'instanceId'>;

/**
 * Why an open turn is nobody's any more, given that this instance doesn't run it: it is the instance's own, from before a
 * crash, or its owner has let the deadline pass. Undefined while it may still be running elsewhere.
 */
function orphanedBy({ clock, instanceId }: OrphanContext, { owner, deadline }: Extract<SessionState, { status: 'running' }>): InterruptionReason | undefined {
  if (owner === instanceId) return 'crash';
  return clock.now() > Date.parse(deadline) + DEADLINE_GRACE_MS ? 'deadline' : undefined;
}

/**
 * Closes a session's open turn if nobody runs it any more; the caller knows that this instance doesn't. Resolves false when
 * the turn may still be running elsewhere, true when it is closed now, whoever was first. Errors: `store_unavailable`.
 */
export async function closeOrphan(context: OrphanContext, session_id: string, { state, head, lastEventId, account_id }: LoadedSession): Promise<boolean> {
  if (state.status !== 'running') return true;
  const reason = orphanedBy(context, state);
  if (!reason) return false;
  const author = { account_id: account_id!, key_id: 'system', request_id: 'recovery', causation_id: lastEventId! };
  try {
    await record(context, author, { session_id, state, head }, { type: 'interrupt_turn', turn: state.turn, reason });
  } catch (error) {
    if (!isTurnlogError(error, 'stream_conflict')) throw error;
  }
  return true;
}

/** Closes the turn that a read model shows as open, if nobody runs it any more. Errors: `store_unavailable`. */
export async function interruptIfOrphaned(context: OrphanContext, { session_id }: Pick<OpenTurn, 'session_id'>): Promise<void> {
  await closeOrphan(context, session_id, await loadSession(context.store, session_id, () => Promise.resolve([])));
}
