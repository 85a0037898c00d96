import { LRUCache } from 'lru-cache';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import type { KeyStore } from '../../ports/keyStore.ts';
import { createKeyPool, createKey } from './keyPool.ts';
import type { MasterKeys } from './masterKeys.ts';
import type { TextKey } from './protectedText.ts';

/** Keys by id; a key that was destroyed has the value undefined. */
export type KeysById = ReadonlyMap<string, TextKey | undefined>;

/** What of a key store serves erasures; the keys that it destroys are forgotten as well. */
type Erasures = Pick<KeyStore, 'beginErasure' | 'listErasures' | 'endErasure'>;

/** The keys of texts, unwrapped, as far as this process has them in memory. */
export interface Keyring extends Erasures {
  /**
   * A key that nobody has used, kept durably before: none is waited for as a rule.
   * Errors: `store_unavailable`.
   */
  issueKey(): TextKey | Promise<TextKey>;
  /**
   * The keys of these ids, at once where all are in memory.
   * Errors: `store_unavailable`, `key_missing` for one that was lost or whose master key is not here.
   */
  find(ids: ReadonlySet<string>): KeysById | Promise<KeysById>;
  /**
   * The key of an id that whoever needs it knows, kept durably where there was none; undefined for one
   * that was destroyed. Errors: `store_unavailable`, `key_missing` where its master key is not here.
   */
  ensureKey(id: string): Promise<TextKey | undefined>;
  /** Lets go of keys that were destroyed: no memory of this process holds them any more. */
  evict(ids: readonly string[]): void;
}

interface Parts {
  store: Pick<KeyStore, 'insert' | 'find' | keyof Erasures>;
  masterKeys: Pick<MasterKeys, 'wrap' | 'unwrap'>;
}

const keyMissingError = (id: string): TurnlogError =>
  new TurnlogError(
    'key_missing',
    `The key ${id} of texts in the log is not in the key store, and was not destroyed: it was lost. Restore the key store from its backup.`,
    { retriable: true, retryAfterSeconds: 10 },
  );

/** The keys of a key store, as this process uses them. */
export function createKeyring({ store, masterKeys }: Parts): Keyring {
  const known = new LRUCache<string, TextKey | 'destroyed'>({ max: LIMITS.cache.textKeys });
  const fromPool = createKeyPool(store, masterKeys);

  /** An id that was read out of a box is a part of it: remembered itself, it would keep the whole text. */
  const remember = (id: string, key: TextKey | 'destroyed'): void =>
    void known.set(Buffer.from(id).toString(), key);

  const taken = (key: TextKey): TextKey => {
    remember(key.id, key);
    return key;
  };

  /** Those of these ids that are in memory. */
  function inMemory(ids: ReadonlySet<string>): Map<string, TextKey | undefined> {
    const found = new Map<string, TextKey | undefined>();
    for (const id of ids) {
      const key = known.get(id);
      if (key !== undefined) found.set(id, key === 'destroyed' ? undefined : key);
    }
    return found;
  }

  async function findKept(
    found: Map<string, TextKey | undefined>,
    missing: readonly string[],
  ): Promise<KeysById> {
    const kept = await store.find(missing);
    for (const id of missing) {
      const wrapped = kept.get(id);
      if (wrapped === undefined) throw keyMissingError(id);
      // It may have been forgotten while it was looked for.
      const destroyed = wrapped === 'destroyed' || known.get(id) === 'destroyed';
      const key = destroyed ? 'destroyed' : masterKeys.unwrap(wrapped);
      remember(id, key);
      found.set(id, key === 'destroyed' ? undefined : key);
    }
    return found;
  }

  async function named(id: string): Promise<TextKey | undefined> {
    if (!(await store.find([id])).has(id))
      try {
        await store.insert([masterKeys.wrap(createKey(id))]);
      } catch (error) {
        // Another process was faster, if there is one now.
        if (!(await store.find([id])).has(id)) throw error;
      }
    return (await findKept(new Map(), [id])).get(id);
  }

  const forget = (ids: readonly string[]): void => ids.forEach((id) => remember(id, 'destroyed'));

  return {
    issueKey() {
      const key = fromPool();
      return 'then' in key ? key.then(taken) : taken(key);
    },
    find(ids) {
      const found = inMemory(ids);
      if (found.size === ids.size) return found;
      return findKept(
        found,
        [...ids].filter((id) => !found.has(id)),
      );
    },
    async ensureKey(id) {
      const found = inMemory(new Set([id]));
      return found.has(id) ? found.get(id) : named(id);
    },
    evict: forget,
    beginErasure: store.beginErasure,
    listErasures: store.listErasures,
    async endErasure(stream, ids) {
      await store.endErasure(stream, ids);
      forget(ids);
    },
  };
}
