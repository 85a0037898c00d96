import { TurnlogError } from '../../shared/errors.ts';
import { identityOf, logIdAt } from '../../shared/eventlog/logIdentity.ts';
import { formatVkey, noteSigner } from '../../shared/tlog/noteKeys.ts';
import type { Operator } from '../compose/operator.ts';

/**
 * The keys that sign the checkpoints of the log's transparency log, the first one first. Errors:
 * `configuration_invalid`, `store_unavailable`.
 */
export async function currentVkeys({ signing, store }: Operator): Promise<string[]> {
  const { origin: name, keys } = signing();
  const identity = await identityOf(store);
  if (!identity)
    throw new TurnlogError('configuration_invalid', 'The log is empty: it has no id yet.');
  const origin = `${name}/${logIdAt(identity)}`;
  return keys.map((key) => formatVkey(noteSigner(origin, key).key));
}
