import { readLogIdentity } from '../eventlog/identity/logIdentity.ts';
import { logStream } from '../eventlog/streams.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { Position } from '../ports/eventStore.ts';
import type { Actor } from '../commandHandling/context.ts';
import { handle, type HandleContext } from '../commandHandling/handle.ts';
import { wholeStreamTarget } from '../commandHandling/targetStream.ts';
import { log } from './decider.ts';

/** The actors of declarations, because the log belongs to no account. */
const SERVICE: Actor = { account_id: 'service', key_id: 'service', request_id: 'prover' };
const OPERATOR: Actor = { account_id: 'operator', key_id: 'operator', request_id: 'cli' };

async function logTarget({ store }: Pick<HandleContext, 'store'>) {
  const identity = await readLogIdentity(store);
  if (!identity)
    throw new TurnlogError('configuration_invalid', 'The log is empty: it has no tree to declare.');
  return wholeStreamTarget(logStream(identity.root), log);
}

/**
 * Records in the log that its tree is signed under an origin and with these keys. Resolves with the
 * position of the declaration, or undefined when it is recorded already. Throws the errors of handle.
 */
export async function declareTree(
  context: HandleContext,
  tree: { origin: string; vkeys: readonly string[] },
): Promise<Position | undefined> {
  const target = await logTarget(context);
  const appended = await handle(context, SERVICE, target, { type: 'declare_tree', ...tree });
  return appended?.position;
}

/**
 * Records that another tree begins, whose origin ends with the id that this resolves with. Throws the
 * errors of handle.
 */
export async function replaceTree(context: HandleContext, reason: string): Promise<string> {
  const target = await logTarget(context);
  const appended = await handle(context, OPERATOR, target, { type: 'replace_tree', reason });
  return appended!.lastEventId;
}
