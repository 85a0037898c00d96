import type { Config } from '../../shared/lib/config/config.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import { createKeyring } from '../../shared/eventlog/encryption/keyring.ts';
import type { ProtectedStore } from '../../shared/eventlog/encryption/protectedStore.ts';
import type { KeyStore } from '../../shared/ports/keyStore.ts';
import type { ServiceName } from '../process/serviceNames.ts';
import type { ProcessPart, ProcessParts } from '../process/processParts.ts';
import { openEventStore } from './eventStore.ts';
import type { StorageLocation } from './logLocation.ts';
import { openTextKeys, textKeysPart } from './textKeys.ts';

/**
 * What the parts of a process are opened with, and where each of them is kept, to be closed in
 * reverse order.
 */
export interface Opening {
  config: Config;
  logger: Logger;
  services: readonly ServiceName[];
  opened: AsyncDisposableStack;
}

/** What was opened, as long as somebody else sees to closing it. */
export type OpenedParts = Omit<ProcessParts, keyof AsyncDisposable>;

/**
 * The event store of a process, with the keys of its texts, and the part that looks at those.
 * Errors: those of its adapter, `configuration_invalid` (the master keys).
 */
export async function openProtectedStore(
  { opened, logger }: Pick<Opening, 'opened' | 'logger'>,
  place: StorageLocation,
): Promise<{ store: ProtectedStore; keyStore: KeyStore; keysPart: ProcessPart }> {
  if (place.kind === 'embedded' && 'cluster' in place.log)
    logger.warn(
      { data_folder: place.dataFolder },
      'the log is in a cluster, and the keys of its texts in the data folder: other servers of the cluster can not read them, nor this one theirs. To share the cluster, set DATABASE_URL',
    );
  const keys = await openTextKeys(place);
  opened.defer(() => keys.store.close());
  const store = opened.adopt(await openEventStore(place.log, logger), (log) => log.close());
  return {
    store: { ...store, keys: createKeyring(keys) },
    keyStore: keys.store,
    keysPart: textKeysPart(keys, logger),
  };
}
