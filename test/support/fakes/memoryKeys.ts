import { createKeyring, type Keyring } from '../../../shared/eventlog/encryption/keyring.ts';
import { newMasterKey, parseMasterKeys } from '../../../shared/eventlog/encryption/masterKeys.ts';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';
import type { FoundKey, KeyStore } from '../../../shared/ports/keyStore.ts';

type ReadLog = Pick<EventLog, 'readStream'>;

/** A key store in memory. A key that a test removes from `kept` is lost. */
export function memoryKeyStore(kept = new Map<string, FoundKey>()): () => KeyStore {
  const begun = new Map<string, string>();
  /** Opens the store as another process does. */
  return () => {
    let isClosed = false;
    const requireOpen = (): void => {
      if (isClosed) throw storeUnavailableError('The key store is closed.');
    };
    return {
      async insert(keys) {
        requireOpen();
        const ids = keys.map(({ key_id }) => key_id);
        if (new Set(ids).size < ids.length || ids.some((id) => kept.has(id)))
          throw storeUnavailableError('The key store has one of the new keys already.');
        for (const key of keys) kept.set(key.key_id, key);
      },
      async find(ids) {
        requireOpen();
        return new Map([...kept].filter(([id]) => ids.includes(id)));
      },
      async list({ after = '', limit }) {
        requireOpen();
        const keys = [...kept.values()].filter((key) => key !== 'destroyed');
        return keys
          .filter(({ key_id }) => key_id > after)
          .toSorted((a, b) => (a.key_id < b.key_id ? -1 : 1))
          .slice(0, limit);
      },
      async count() {
        requireOpen();
        const byMaster = Map.groupBy(kept.values(), (key) =>
          key === 'destroyed' ? key : key.master_key_id,
        );
        return new Map([...byMaster].map(([id, { length }]) => [id, length]));
      },
      async rewrap(keys) {
        requireOpen();
        for (const key of keys)
          if (typeof kept.get(key.key_id) === 'object') kept.set(key.key_id, key);
      },
      async beginErasure(stream, why) {
        requireOpen();
        if (!begun.has(stream)) begun.set(stream, why);
      },
      async listErasures(limit) {
        requireOpen();
        return [...begun].slice(0, limit).map(([stream, why]) => ({ stream, why }));
      },
      async endErasure(stream, ids) {
        requireOpen();
        for (const id of ids) kept.set(id, 'destroyed');
        begun.delete(stream);
      },
      close: async () => void (isClosed = true),
    };
  };
}

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
  const openStore = memoryKeyStore(kept);
  const masterKeys = parseMasterKeys(newMasterKey(), 'memory');
  const open = (of = log): Keyring => createKeyring({ store: openStore(), masterKeys, log: of });
  return { open, keys: open(), kept };
}
