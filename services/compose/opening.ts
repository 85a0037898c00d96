import { existsSync } from 'node:fs';
import { keyStoreFile } from '../../infra/sqlite/keyStore/database.ts';
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
import type { EmbeddedLocation, StorageLocation } from './logLocation.ts';
import { observeStore } from './features/metrics.ts';
import { openTextKeys, textKeysPart } from './textKeys.ts';

/** The dependencies of opening the parts of a process; `opened` closes them in reverse order. */
export interface Opening {
  config: Config;
  logger: Logger;
  metrics: Metrics;
  services: readonly ServiceName[];
  memory: MemoryLedger;
  opened: AsyncDisposableStack;
}

/** The opened parts; the caller closes them. */
export type OpenedParts = Omit<
  ProcessParts,
  keyof AsyncDisposable | 'memory' | 'metrics' | 'console'
>;

/** The log outlives the machine, but the keys of its texts do not. */
function warnOfLocalKeys(
  { keysFolder }: EmbeddedLocation,
  isNew: boolean,
  logger: Pick<Logger, 'warn'>,
): void {
  if (isNew)
    logger.warn(
      { keys_folder: keysFolder },
      'the log is in a cluster, and the keys of its texts were created in this folder: keys.db and master.key. Without them no text of the log can be read. Back up both, apart from the log. To keep them outside the data folder, move both and set KEYS_DIR to their folder',
    );
  logger.warn(
    { keys_folder: keysFolder },
    `the keys of the texts are not in the cluster: servers with other keys can not read the texts of this one. To share the cluster, set DATABASE_URL and import these keys: npm run cli -- text-keys import ${keysFolder}`,
  );
}

/** Opens the event store of a process, its key store, and the part that checks the master keys. */
export async function openProtectedStore(
  { opened, logger, metrics }: Pick<Opening, 'opened' | 'logger' | 'metrics'>,
  place: StorageLocation,
): Promise<{ store: ProtectedStore; keyStore: KeyStore; keysPart: ProcessPart }> {
  const isNew = place.kind === 'embedded' && !existsSync(keyStoreFile(place.keysFolder));
  const keys = await openTextKeys(place);
  opened.defer(() => keys.store.close());
  if (place.kind === 'embedded' && 'cluster' in place.log) warnOfLocalKeys(place, isNew, logger);
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
  const isFixed = MAX_PROMPT_BYTES !== undefined;
  return createMemoryLedger({
    prompts: {
      isFixed,
      all: { permits: MAX_RUNS, bytes },
      share: { permits: Math.min(MAX_RUNS_PER_ACCOUNT, MAX_RUNS), bytes: bytes / 2 },
    },
    waitingRuns: {
      isFixed,
      all: { permits: LIMITS.run.waiting, bytes: MAX_PROMPT_BYTES ?? heapBytesFor('waitingRuns') },
    },
  });
}
