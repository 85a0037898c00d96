import type { Config } from '../../shared/lib/config/config.ts';
import type { Metrics } from '../../shared/health/metrics.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import {
  createMemoryLedger,
  heapBytesFor,
  type MemoryLedger,
} from '../../shared/lib/memory/ledger.ts';
import { LIMITS } from '../../shared/limits.ts';
import { createKeyring } from '../../shared/eventlog/encryption/keyring.ts';
import type { ProtectedStore } from '../../shared/eventlog/encryption/protectedStore.ts';
import type { KeyStore } from '../../shared/ports/keyStore.ts';
import type { ServiceName } from '../process/serviceNames.ts';
import type { ProcessPart, ProcessParts } from '../process/processParts.ts';
import { openEventStore } from './eventStore.ts';
import type { StorageLocation } from './logLocation.ts';
import { observeStore } from './features/metrics.ts';
import { openTextKeys, textKeysPart } from './textKeys.ts';

/** What the parts of a process are opened with; `opened` closes them in reverse order. */
export interface Opening {
  config: Config;
  logger: Logger;
  metrics: Metrics;
  services: readonly ServiceName[];
  memory: MemoryLedger;
  opened: AsyncDisposableStack;
}

/** The opened parts; the caller closes them. */
export type OpenedParts = Omit<ProcessParts, keyof AsyncDisposable | 'memory' | 'metrics'>;

/** Opens the event store of a process, its key store, and the part that checks the master keys. */
export async function openProtectedStore(
  { opened, logger, metrics }: Pick<Opening, 'opened' | 'logger' | 'metrics'>,
  place: StorageLocation,
): Promise<{ store: ProtectedStore; keyStore: KeyStore; keysPart: ProcessPart }> {
  if (place.kind === 'embedded' && 'cluster' in place.log)
    logger.warn(
      { data_folder: place.dataFolder },
      'the log is in a cluster, and the keys of its texts are in the data folder: servers of the cluster can not read the texts of each other. To share the cluster, set DATABASE_URL',
    );
  const keys = await openTextKeys(place);
  opened.defer(() => keys.store.close());
  const log = opened.adopt(await openEventStore(place.log, logger), (opening) => opening.close());
  const store = observeStore(log, metrics);
  return {
    store: { ...store, keys: createKeyring({ ...keys, log: store }) },
    keyStore: keys.store,
    keysPart: textKeysPart(keys, logger),
  };
}

/** The memory ledger of a process. The number of runs is limited with the bytes of their prompts. */
export function openMemoryLedger({
  MAX_RUNS,
  MAX_RUNS_PER_ACCOUNT = Math.ceil(MAX_RUNS / 2),
  MAX_PROMPT_BYTES,
}: Config): MemoryLedger {
  const bytes = MAX_PROMPT_BYTES ?? heapBytesFor('prompts');
  return createMemoryLedger({
    prompts: {
      all: { permits: MAX_RUNS, bytes },
      share: { permits: Math.min(MAX_RUNS_PER_ACCOUNT, MAX_RUNS), bytes: bytes / 2 },
    },
    waitingRuns: {
      all: { permits: LIMITS.run.waiting, bytes: MAX_PROMPT_BYTES ?? heapBytesFor('waitingRuns') },
    },
  });
}
