import { waitUntilVisible } from '../../shared/commandHandling/context.ts';
import { interruptOrphanedTurns } from '../../shared/runs/recovery/interruptTurn.ts';
import type { RunContext } from '../../shared/runs/context.ts';
import type { ProtectedStore } from '../../shared/eventlog/encryption/protectedStore.ts';
import type { EventStore, Position } from '../../shared/ports/eventStore.ts';

/** The same store, and the position of the last of the events that are written through it. */
function notingPositions(store: ProtectedStore): {
  store: ProtectedStore;
  written: () => Position | undefined;
} {
  let last: Position | undefined;
  const append: EventStore['append'] = async (...given) => {
    const result = await store.append(...given);
    if (last === undefined || result.position > last) last = result.position;
    return result;
  };
  return { store: { ...store, append }, written: () => last };
}

/**
 * Closes the turns that a crash of this instance left open; every later query shows them so.
 * Errors: `store_unavailable`, the signal's reason.
 */
export async function recoverOpenTurns(context: RunContext, signal: AbortSignal): Promise<void> {
  const open = await context.readModels.listOpenTurns();
  if (open.length === 0) return;
  const { store, written } = notingPositions(context.store);
  await interruptOrphanedTurns({ ...context, store }, open, signal);
  signal.throwIfAborted();
  const last = written();
  if (last !== undefined) await waitUntilVisible(context, last);
  context.logger.warn(
    { turns: open.length },
    'turns were open: those that a crash left behind are marked as interrupted',
  );
}
