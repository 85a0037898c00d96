import { LRUCache } from 'lru-cache';
import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import type { EventLog } from '../../ports/eventStore.ts';
import type { KeyStore, WrappedKey } from '../../ports/keyStore.ts';
import { isErasure } from '../eventTypes.ts';
import { createErasureLookup } from '../reading/erasureLookup.ts';
import type { MasterKeys } from './masterKeys.ts';
import type { TextKey } from './protectedText.ts';
import { randomBytes, randomFillSync } from 'node:crypto';
import { entriesUpTo } from '../../lib/memory/entriesUpTo.ts';

/** Keys that are stored together: few in a process that has used none yet. */
const FIRST_BATCH = 16;
const LARGEST_BATCH = 512;
/** After a failure the pool is used up first; a refill is tried at most this often. */
const TRY_AGAIN_AFTER_MS = 1_000;

const KEY_BYTES = 32;
const ID_BYTES = 12;

/** A new key with this id, not stored yet. */
const createKey = (id: string): TextKey => ({
  id,
  secret: randomBytes(KEY_BYTES).toString('base64url'),
});

function createKeys(count: number): TextKey[] {
  const bytes = randomFillSync(Buffer.alloc(count * (KEY_BYTES + ID_BYTES)));
  const keys = Array.from({ length: count }, (_, index) => {
    const at = index * (KEY_BYTES + ID_BYTES);
    return {
      id: bytes.toString('base64url', at, at + ID_BYTES),
      secret: bytes.toString('base64url', at + ID_BYTES, at + ID_BYTES + KEY_BYTES),
    };
  });
  bytes.fill(0);
  return keys;
}

/**
 * Hands out new keys, stored before use. They are created in batches, the next one ahead of need,
 * so that callers rarely wait for the disk. Unused keys remain in the store when the process ends.
 */
function createKeyPool(
  store: Pick<KeyStore, 'insert'>,
  masterKeys: Pick<MasterKeys, 'wrap'>,
): () => TextKey | Promise<TextKey> {
  const pool: TextKey[] = [];
  let batch = FIRST_BATCH;
  let filling: Promise<void> | undefined;
  let failedAt = -Infinity;

  async function fill(): Promise<void> {
    const keys = createKeys(batch);
    await store.insert(keys.map(masterKeys.wrap));
    pool.push(...keys);
    batch = Math.min(batch * 2, LARGEST_BATCH);
  }

  const refill = (): Promise<void> =>
    (filling ??= fill()
      .catch((error: unknown) => {
        failedAt = performance.now();
        throw error;
      })
      .finally(() => {
        filling = undefined;
      }));

  async function next(): Promise<TextKey> {
    for (;;) {
      await refill();
      const key = pool.pop();
      if (key) return key;
    }
  }

  return () => {
    const key = pool.pop();
    if (!key) return next();
    const needsRefill =
      pool.length < batch / 4 && performance.now() - failedAt > TRY_AGAIN_AFTER_MS;
    // A caller that finds the pool empty gets the error.
    if (needsRefill && !filling) refill().catch(() => undefined);
    return key;
  };
}

/** Keys by id; undefined for a destroyed key. */
type KeysById = ReadonlyMap<string, TextKey | undefined>;

/** The part of a key store that erasures use; destroyed keys are evicted from memory too. */
type Erasures = Pick<KeyStore, 'beginErasure' | 'listErasures' | 'endErasure'>;

/**
 * The state of a key: `destroyed`; `lost` when it was never stored here; `locked` when its
 * master key is unavailable.
 */
export type KeyState = TextKey | 'destroyed' | 'lost' | 'locked';

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
  /** The states of keys in the key store, for erasures. Throws `store_unavailable`. */
  examine(ids: readonly string[]): Promise<ReadonlyMap<string, KeyState>>;
  /**
   * True when the stream is erased: its texts must not be decrypted, even if their key exists
   * again. Synchronous for a stream that was checked before. Throws `store_unavailable`.
   */
  isErased(stream: string): boolean | Promise<boolean>;
  /** Records the type of a stream's last event, for callers of `isErased` that have just read it. */
  noteLastEvent(stream: string, type: string): void;
  /**
   * Records that a stream is erased, and evicts keys from memory. The key store still decides
   * whether they exist: an erasure may name keys of other streams.
   */
  evict(stream: string, ids: readonly string[]): void;
  /** Evicts all keys from memory, because any stream may have been erased. */
  evictAll(): void;
}

/** The part of a keyring that readers of texts use. */
export type ReadingKeys = Pick<Keyring, 'find' | 'isErased'>;

interface Parts {
  store: Pick<KeyStore, 'insert' | 'find' | keyof Erasures>;
  masterKeys: Pick<MasterKeys, 'wrap' | 'unwrap'>;
  log: Pick<EventLog, 'readStream'>;
}

const keyMissingError = (id: string): TurnlogError =>
  new TurnlogError(
    'key_missing',
    `The key ${id} of texts in the log was lost: it is not in this key store, and it was not destroyed. Start with the DATA_DIR, KEYS_DIR or DATABASE_URL of the server that wrote the texts. If that is gone, restore its keys.db and master.key, or its database, from a backup. Without a backup, these texts can't be read any more. Once the key is there: npm run cli -- projections rebuild`,
    { retriable: true, retryAfterSeconds: 10 },
  );

export function createKeyring({ store, masterKeys, log }: Parts): Keyring {
  const cache = new LRUCache<string, TextKey | 'destroyed'>(entriesUpTo(LIMITS.cache.textKeys));
  const nextKey = createKeyPool(store, masterKeys);
  const erasures = createErasureLookup(log);
  /** Keys that were looked up during an eviction are not cached. */
  let evictions = 0;

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
    const evictionsBefore = evictions;
    const storedKeys = await store.find(missingIds);
    for (const id of missingIds) {
      const wrapped = storedKeys.get(id);
      if (wrapped === undefined) throw keyMissingError(id);
      // It may have been destroyed during the lookup.
      const destroyed = wrapped === 'destroyed' || cache.get(id) === 'destroyed';
      const key = destroyed ? 'destroyed' : masterKeys.unwrap(wrapped);
      if (destroyed || evictions === evictionsBefore) remember(id, key);
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

  function stateOf(wrapped: WrappedKey): KeyState {
    try {
      return masterKeys.unwrap(wrapped);
    } catch (error) {
      if (!isTurnlogError(error, 'key_missing')) throw error;
      return 'locked';
    }
  }

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
    async examine(ids) {
      const storedKeys = await store.find(ids);
      return new Map(
        ids.map((id): [string, KeyState] => {
          const key = storedKeys.get(id) ?? 'lost';
          return [id, typeof key === 'object' ? stateOf(key) : key];
        }),
      );
    },
    isErased: erasures.isErased,
    noteLastEvent: (stream, type) => erasures.note(stream, isErasure(type)),
    evict(stream, ids) {
      evictions += 1;
      erasures.note(stream, true);
      // The erasure may name keys of other streams, which are then loaded again.
      for (const id of ids) if (cache.get(id) !== 'destroyed') cache.delete(id);
    },
    evictAll() {
      evictions += 1;
      erasures.recheckAll();
      for (const [id, key] of cache) if (key !== 'destroyed') cache.delete(id);
    },
    beginErasure: store.beginErasure,
    listErasures: store.listErasures,
    async endErasure(stream, ids) {
      await store.endErasure(stream, ids);
      for (const id of ids) remember(id, 'destroyed');
    },
  };
}
