import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { identityOf, logIdAt } from '../../../shared/eventlog/identity/logIdentity.ts';
import { formatVkey, noteSigner } from '../../../shared/transparency/tlog/noteKeys.ts';
import type { Operator } from '../../compose/operator/operator.ts';

/**
 * The origin of the log's transparency log, and the keys that sign its checkpoints, the first one
 * first. Errors: `configuration_invalid`, `store_unavailable`.
 */
export async function readVkeys({
  signing,
  store,
}: Operator): Promise<{ origin: string; vkeys: string[] }> {
  const { origin: name, keys } = signing();
  const identity = await identityOf(store);
  if (!identity)
    throw new TurnlogError('configuration_invalid', 'The log is empty: it has no id yet.');
  const origin = `${name}/${logIdAt(identity)}`;
  return { origin, vkeys: keys.map((key) => formatVkey(noteSigner(origin, key).key)) };
}
