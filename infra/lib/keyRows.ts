import type { FoundKey, WrappedKey } from '../../shared/ports/keyStore.ts';

/** A key as a database stores it. A destroyed key has only its id. */
export interface KeyRow {
  key_id: string;
  master_key_id: string | null;
  wrapped: Uint8Array | null;
}

/** Builds the result of `find` of a key store. */
export const toFoundKeys = (rows: readonly KeyRow[]): Map<string, FoundKey> =>
  new Map(
    rows.map((row) => [row.key_id, row.wrapped === null ? 'destroyed' : (row as WrappedKey)]),
  );

/** The number of keys of a master key, or of destroyed keys. */
export interface KeyCountRow {
  master_key_id: string | null;
  keys: number;
}

/** Builds the result of `count` of a key store. */
export const toKeyCounts = (rows: readonly KeyCountRow[]): Map<string, number> =>
  new Map(rows.map(({ master_key_id, keys }) => [master_key_id ?? 'destroyed', keys]));
