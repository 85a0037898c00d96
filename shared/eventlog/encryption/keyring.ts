import { LRUCache } from 'lru-cache';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import type { KeyStore } from '../../ports/keyStore.ts';
import { createKeyPool, createKey } from './keyPool.ts';
import type { MasterKeys } from './masterKeys.ts';
import type { TextKey } from './protectedText.ts';

/** Keys by id; undefined for a destroyed key. */
export type KeysById = ReadonlyMap<string, TextKey | undefined>;

/** The part of a key store that erasures use; destroyed keys are evicted from memory too. */
type Erasures = Pick<KeyStore, 'beginErasure' | 'listErasures' | 'endErasure'>;

/** The unwrapped keys of texts, with a cache in memory. */
export interface Keyring extends Erasures {
  /** A new key, already stored; usually without waiting. Throws `store_unavailable`. */
  issueKey(): TextKey | Promise<TextKey>;
  /**
   * The keys with these ids, synchronously when all are in memory. Throws `store_unavailable`, or
   * `key_missing` for a lost key or an unavailable master key.
   */
  find(ids: ReadonlySet<string>): KeysById | Promise<KeysById>;
  /**
   * The key with an id that the caller chose, created if it does not exist; undefined for a
   * destroyed key. Throws `store_unavailable`, or `key_missing` for an unavailable master key.
   */
  ensureKey(id: string): Promise<TextKey | undefined>;
  /** Evicts destroyed keys from memory. */
  evict(ids: readonly string[]): void;
}

interface Parts {
  store: Pick<KeyStore, 'insert' | 'find' | keyof Erasures>;
  masterKeys: Pick<MasterKeys, 'wrap' | 'unwrap'>;
}

const keyMissingError = (id: string): TurnlogError =>
  new TurnlogError(
    'key_missing',
    `The key ${id} of texts in the log is neither in the key store nor destroyed: it was lost. Restore the key store from its backup.`,
    { retriable: true, retryAfterSeconds: 10 },
  );

export function createKeyring({ store, masterKeys }: Parts): Keyring {
  const cache = new LRUCache<string, TextKey | 'destroyed'>({ max: LIMITS.cache.textKeys });
  const nextKey = createKeyPool(store, masterKeys);

  /** The id is copied: a substring of a ciphertext would keep the whole text in memory. */
  const remember = (id: string, key: TextKey | 'destroyed'): void =>
    void cache.set(Buffer.from(id).toString(), key);

  const rememberKey = (key: TextKey): TextKey => {
    remember(key.id, key);
    return key;
  };

  function inMemory(ids: ReadonlySet<string>): Map<string, TextKey | undefined> {
    const keysById = new Map<string, TextKey | undefined>();
    for (const id of ids) {
      const key = cache.get(id);
      if (key !== undefined) keysById.set(id, key === 'destroyed' ? undefined : key);
    }
    return keysById;
  }

  async function findStoredKeys(
    keysById: Map<string, TextKey | undefined>,
    missingIds: readonly string[],
  ): Promise<KeysById> {
    const storedKeys = await store.find(missingIds);
    for (const id of missingIds) {
      const wrapped = storedKeys.get(id);
      if (wrapped === undefined) throw keyMissingError(id);
      // It may have been evicted during the lookup.
      const destroyed = wrapped === 'destroyed' || cache.get(id) === 'destroyed';
      const key = destroyed ? 'destroyed' : masterKeys.unwrap(wrapped);
      remember(id, key);
      keysById.set(id, key === 'destroyed' ? undefined : key);
    }
    return keysById;
  }

  async function ensureStoredKey(id: string): Promise<TextKey | undefined> {
    if (!(await store.find([id])).has(id))
      try {
        await store.insert([masterKeys.wrap(createKey(id))]);
      } catch (error) {
        // Another process may have created it concurrently.
        if (!(await store.find([id])).has(id)) throw error;
      }
    return (await findStoredKeys(new Map(), [id])).get(id);
  }

  const evict = (ids: readonly string[]): void => ids.forEach((id) => remember(id, 'destroyed'));

  return {
    issueKey() {
      const key = nextKey();
      return 'then' in key ? key.then(rememberKey) : rememberKey(key);
    },
    find(ids) {
      const keysById = inMemory(ids);
      if (keysById.size === ids.size) return keysById;
      return findStoredKeys(
        keysById,
        [...ids].filter((id) => !keysById.has(id)),
      );
    },
    async ensureKey(id) {
      const keysById = inMemory(new Set([id]));
      return keysById.has(id) ? keysById.get(id) : ensureStoredKey(id);
    },
    evict: evict,
    beginErasure: store.beginErasure,
    listErasures: store.listErasures,
    async endErasure(stream, ids) {
      await store.endErasure(stream, ids);
      evict(ids);
    },
  };
}
