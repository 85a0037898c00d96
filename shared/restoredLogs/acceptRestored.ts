import { log } from './decider.ts';
import { readLogIdentity, logIdAt } from '../eventlog/identity/logIdentity.ts';
import { logStream } from '../eventlog/streams.ts';
import type { Actor } from '../commandHandling/context.ts';
import { handle, type HandleContext } from '../commandHandling/handle.ts';
import { wholeStreamTarget } from '../commandHandling/targetStream.ts';

interface Declared {
  /** Ids of logs that this one stands for, beside its own and those that it has had. */
  replaces: readonly string[];
  /** For people. */
  reason: string;
}

/** Who declares it: the log is no account's. */
const OPERATOR: Actor = { account_id: 'operator', key_id: 'operator', request_id: 'cli' };

/**
 * Declares that the log, which is not what its followers knew, is the one to follow: it was
 * restored, or exchanged, on purpose. It has a new id from there on. Resolves with that id and with
 * those that it stands for.
 * Errors: those of handle.
 */
export async function acceptRestored(
  context: HandleContext,
  { replaces, reason }: Declared,
): Promise<{ log_id: string; replaces: string[] }> {
  const identity = await readLogIdentity(context.store);
  // In an empty log the declaration is the first event, by which the log is known.
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
