import { createKeyring, type Keyring } from '../../../shared/eventlog/encryption/keyring.ts';
import { newMasterKey, parseMasterKeys } from '../../../shared/eventlog/encryption/masterKeys.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';
import type { FoundKey, KeyStore } from '../../../shared/ports/keyStore.ts';

type ReadLog = Pick<EventLog, 'readStream'>;

/**
 * Keys of texts in memory. `kept` is the key store: what is taken out of it is lost. Without a log no
 * stream is erased.
 */
export function memoryKeys(log: ReadLog = { readStream: async () => [] }): {
  /** The keys as another process has them that starts now. */
  open: (of?: ReadLog) => Keyring;
  keys: Keyring;
  kept: Map<string, FoundKey>;
} {
  const kept = new Map<string, FoundKey>();
  const begun = new Map<string, string>();
  const store: Omit<KeyStore, 'list' | 'count' | 'rewrap' | 'close'> = {
    insert: async (keys) => keys.forEach((key) => kept.set(key.key_id, key)),
    find: async (ids) => new Map([...kept].filter(([id]) => ids.includes(id))),
    beginErasure: async (stream, why) => void (begun.has(stream) || begun.set(stream, why)),
    listErasures: async (limit) =>
      [...begun].slice(0, limit).map(([stream, why]) => ({ stream, why })),
    async endErasure(stream, ids) {
      for (const id of ids) kept.set(id, 'destroyed');
      begun.delete(stream);
    },
  };
  const masterKeys = parseMasterKeys(newMasterKey(), 'memory');
  const open = (of = log): Keyring => createKeyring({ store, masterKeys, log: of });
  return { open, keys: open(), kept };
}
