import { audit } from '../domain/audit/decider.ts';
import type { Audited } from '../domain/audit/events.ts';
import { isLogAway, isTurnlogError, storeUnavailable } from '../errors.ts';
import { auditStream } from '../eventlog/streams.ts';
import type { Actor } from './context.ts';
import { handle, type HandleContext } from './handle.ts';
import { endOfStream } from './target.ts';

/** By store and account: the last of those in this process who have something to note. */
const lines = new WeakMap<object, Map<string, Promise<void>>>();

/** Entries of one account follow each other, instead of racing for the end of its audit. */
function inLine(store: object, accountId: string, work: () => Promise<void>): Promise<void> {
  const line = lines.get(store) ?? new Map<string, Promise<void>>();
  lines.set(store, line);
  const done = (line.get(accountId) ?? Promise.resolve()).then(work);
  const settled = done
    .catch(() => undefined)
    .then(() => {
      if (line.get(accountId) === settled) line.delete(accountId);
    });
  line.set(accountId, settled);
  return done;
}

/**
 * Records that the actor read, proved, exported or erased recorded events. What it is about is
 * answered once this resolves, and not at all when it rejects.
 * Errors: `store_unavailable`, `log_changed`, `event_invalid` for a detail that is too long.
 */
export async function recordAudit(
  context: HandleContext,
  actor: Actor,
  audited: Audited,
): Promise<void> {
  const target = endOfStream(auditStream(actor.account_id), audit);
  const note = async (): Promise<void> =>
    void (await handle(context, actor, target, { type: 'note', audited }));
  try {
    await inLine(context.store, actor.account_id, note);
  } catch (error) {
    if (isLogAway(error) || isTurnlogError(error, 'event_invalid')) throw error;
    throw storeUnavailable('What was asked can be answered only once that is recorded.', error);
  }
}
