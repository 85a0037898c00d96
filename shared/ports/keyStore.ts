/**
 * The key store port: the keys that protect texts, each wrapped by a master key, kept outside the
 * log. Every adapter passes test/contracts/keyStore.ts.
 */

/** A key as it is kept. */
export interface WrappedKey {
  /** Names the key in the boxes that it closed: 16 characters of base64url. */
  key_id: string;
  /** The master key that wraps it: 16 characters of base64url. */
  master_key_id: string;
  /** 60 bytes. */
  wrapped: Uint8Array;
}

/** A key that was destroyed stays known as such: it is not a key that was lost. */
export type FoundKey = WrappedKey | 'destroyed';

/** An erasure of which `endErasure` was not reached. */
export interface OpenErasure {
  stream: string;
  /** What whoever began it said of it, as it was said. */
  why: string;
}

/** All methods reject with `store_unavailable` (retriable) where the keys can't be reached. */
export interface KeyStore {
  /**
   * Keeps new keys, all or none; durable when it resolves. Rejects with `store_unavailable` where an
   * id is taken, be it by a key that was destroyed.
   */
  insert(keys: readonly WrappedKey[]): Promise<void>;
  /** By id; a key that was never kept here is absent. */
  find(ids: readonly string[]): Promise<ReadonlyMap<string, FoundKey>>;
  /** In the order of their ids, after one, destroyed ones left out; for rotation. */
  list(page: { after?: string; limit: number }): Promise<WrappedKey[]>;
  /** How many keys each master key wraps; under `destroyed`, how many were destroyed. */
  count(): Promise<ReadonlyMap<string, number>>;
  /** Replaces how keys are wrapped; one that was destroyed meanwhile stays so. */
  rewrap(keys: readonly WrappedKey[]): Promise<void>;
  /**
   * Notes that the texts of a stream are about to be erased, before its log says so: whatever
   * happens, somebody goes on with it, who is told why. Durable when it resolves; noting it again
   * changes nothing.
   */
  beginErasure(stream: string, why: string): Promise<void>;
  /** At most so many, the oldest first. */
  listErasures(limit: number): Promise<OpenErasure[]>;
  /**
   * Destroys keys for good, known here or not, and with them the note: no file or page of the store
   * holds them when it resolves. Without keys it only takes the note away.
   */
  endErasure(stream: string, keyIds: readonly string[]): Promise<void>;
  close(): Promise<void>;
}
