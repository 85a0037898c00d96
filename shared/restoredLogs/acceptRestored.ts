import { log } from './decider.ts';
import { readLogIdentity, logIdAt } from '../eventlog/identity/logIdentity.ts';
import { logStream } from '../eventlog/streams.ts';
import type { Actor } from '../commandHandling/context.ts';
import { handle, type HandleContext } from '../commandHandling/handle.ts';
import { wholeStreamTarget } from '../commandHandling/targetStream.ts';

interface Declared {
  /** Ids of logs that this log replaces, in addition to its own current and earlier ids. */
  replaces: readonly string[];
  /** For operators. */
  reason: string;
}

/** The actor of the declaration, because the log belongs to no account. */
const OPERATOR: Actor = { account_id: 'operator', key_id: 'operator', request_id: 'cli' };

/**
 * Declares that followers must accept this log although it differs from the one they knew, because
 * it was deliberately restored or replaced. The log then has a new id. Resolves with this id and
 * the ids it replaces. Throws the errors of handle.
 */
export async function acceptRestored(
  context: HandleContext,
  { replaces, reason }: Declared,
): Promise<{ log_id: string; replaces: string[] }> {
  const identity = await readLogIdentity(context.store);
  // In an empty log, the declaration becomes the first event, whose id identifies the log.
  const id = context.ids.uuid();
  const own = identity ? [logIdAt(identity)] : [];
  const all = [...new Set([...own, ...replaces])];
  await handle(
    { ...context, ids: { ...context.ids, uuid: () => id } },
    OPERATOR,
    wholeStreamTarget(logStream(identity?.root ?? id), log),
    { type: 'accept_restore', replaces: all.length > 0 ? all : [id], reason },
  );
  return { log_id: id, replaces: all };
}
