import type { InterruptionReason } from '../../domain/session/events.ts';
import { isTurnlogError } from '../../errors.ts';
import type { OpenTurn } from '../../ports/readModels.ts';
import type { CommandContext } from '../context.ts';
import { loadSession } from './loadSession.ts';
import { record } from './record.ts';

/**
 * Closes a turn that nobody runs any more. Does nothing when it is closed already, whoever was first.
 * Errors: `store_unavailable`.
 */
export async function interruptTurn(context: Pick<CommandContext, 'store' | 'ids' | 'clock'>, open: OpenTurn, reason: InterruptionReason): Promise<void> {
  const loaded = await loadSession(context.store, open.session_id, () => Promise.resolve([]));
  if (loaded.state.status !== 'running' || loaded.state.turn !== open.turn) return;
  const author = { account_id: open.account_id, key_id: 'system', request_id: 'recovery', causation_id: loaded.lastEventId ?? '' };
  try {
    await record(context, author, { session_id: open.session_id, state: loaded.state, head: loaded.head }, { type: 'interrupt_turn', turn: open.turn, reason });
  } catch (error) {
    if (!isTurnlogError(error, 'stream_conflict')) throw error;
  }
}
