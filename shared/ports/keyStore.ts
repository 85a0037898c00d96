/**
 * The key store port: the keys that protect texts, each wrapped by a master key, kept outside the
 * log. Every adapter passes test/contracts/keyStore.ts.
 */

/** A key as it is stored. */
export interface WrappedKey {
  /** Identifies the key in its ciphertexts: 16 characters of base64url. */
  key_id: string;
  /** The master key that wraps it: 16 characters of base64url. */
  master_key_id: string;
  /** 60 bytes. */
  wrapped: Uint8Array;
}

/** Destroyed keys stay on record, to tell them from lost ones. */
export type FoundKey = WrappedKey | 'destroyed';

/** An erasure that has begun and not ended. */
export interface OpenErasure {
  stream: string;
  /** The reason passed to `beginErasure`. */
  why: string;
}

/** All methods reject with `store_unavailable` (retriable) when the keys can't be reached. */
export interface KeyStore {
  /**
   * Stores new keys, all or none; durable when it resolves. Rejects with `store_unavailable` when
   * an id exists, even of a destroyed key.
   */
  insert(keys: readonly WrappedKey[]): Promise<void>;
  /** Finds keys by id; the result lacks keys that were never stored here. */
  find(ids: readonly string[]): Promise<ReadonlyMap<string, FoundKey>>;
  /** Lists keys in order of their ids, without destroyed ones; for rotation. */
  list(page: { after?: string; limit: number }): Promise<WrappedKey[]>;
  /** The number of keys per master key, and of destroyed ones under `destroyed`. */
  count(): Promise<ReadonlyMap<string, number>>;
  /** Replaces wrapped keys; keys destroyed meanwhile stay destroyed. */
  rewrap(keys: readonly WrappedKey[]): Promise<void>;
  /**
   * Records, before the log does, that the texts of a stream are being erased, so that an
   * interrupted erasure is completed with its reason. Durable when it resolves; idempotent.
   */
  beginErasure(stream: string, why: string): Promise<void>;
  /** Lists open erasures, oldest first. */
  listErasures(limit: number): Promise<OpenErasure[]>;
  /**
   * Destroys keys permanently, whether stored here or not, and removes the record of the erasure:
   * no file or page of the store holds them when it resolves. Without keys it only removes the
   * record.
   */
  endErasure(stream: string, keyIds: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** What is copied from one key store to another. */
export interface KeySource extends Pick<KeyStore, 'list' | 'listErasures'> {
  /** Lists the ids of destroyed keys in order. */
  listDestroyed(page: { after?: string; limit: number }): Promise<string[]>;
}
