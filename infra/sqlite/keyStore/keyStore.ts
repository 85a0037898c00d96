import type { DatabaseSync } from 'node:sqlite';
import { retry } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError, storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type {
  KeySource,
  KeyStore,
  OpenErasure,
  WrappedKey,
} from '../../../shared/ports/keyStore.ts';
import { toFoundKeys, toKeyCounts, type KeyCountRow, type KeyRow } from '../../lib/keyRows.ts';
import { isSqliteBusy, sqliteCode, sqliteReason } from '../eventStore/errors.ts';
import { describeFileChange, identifyFiles } from '../eventStore/fileIdentity.ts';
import { keyStoreFile, openKeyDatabase } from './database.ts';

/** How long to wait for another process's transaction, in milliseconds. */
const BUSY_MS = 5_000;
const PAUSES = { firstMs: 2, longestMs: 50, spread: [0.5, 1] } as const;

/** SQLite's primary result code for a key that already exists. */
const CONSTRAINT = 19;

const FIND =
  'SELECT key_id, master_key_id, wrapped FROM text_keys WHERE key_id IN (SELECT value FROM json_each(?))';
const LIST =
  'SELECT key_id, master_key_id, wrapped FROM text_keys WHERE key_id > ? AND wrapped IS NOT NULL ORDER BY key_id LIMIT ?';
const DESTROYED =
  'SELECT key_id FROM text_keys WHERE key_id > ? AND wrapped IS NULL ORDER BY key_id LIMIT ?';
const COUNT = 'SELECT master_key_id, count(*) AS keys FROM text_keys GROUP BY master_key_id';
const INSERT = 'INSERT INTO text_keys (key_id, master_key_id, wrapped) VALUES (?, ?, ?)';
const REWRAP =
  'UPDATE text_keys SET master_key_id = ?, wrapped = ? WHERE key_id = ? AND wrapped IS NOT NULL';
/**
 * Also records unknown keys as destroyed, so that they stay destroyed if a backup restores them.
 */
const DESTROY = `INSERT INTO text_keys (key_id) SELECT value FROM json_each(?) WHERE true
  ON CONFLICT (key_id) DO UPDATE SET master_key_id = NULL, wrapped = NULL`;
const NOTE_ERASURE = 'INSERT INTO erasures (stream, why) VALUES (?, ?) ON CONFLICT DO NOTHING';
const OPEN_ERASURES = 'SELECT stream, why FROM erasures ORDER BY n LIMIT ?';
const DELETE_ERASURE_NOTE = 'DELETE FROM erasures WHERE stream = ?';

function describe(error: unknown): string {
  if (sqliteCode(error) === CONSTRAINT) return 'it has one of the new keys already';
  return sqliteReason(error) ?? 'it was closed, or says what nobody expects';
}

/**
 * Retries for a limited time while another process holds the lock. Converts SQLite's errors to
 * `store_unavailable`.
 */
function retryWhileBusy<Result>(work: () => Result): Promise<Result> {
  const deadline = performance.now() + BUSY_MS;
  const shouldRetry = (error: unknown): boolean =>
    isSqliteBusy(error) && performance.now() < deadline;
  return retry(async () => work(), { pauses: PAUSES, shouldRetry }).catch((error: unknown) => {
    if (isTurnlogError(error)) throw error;
    throw storeUnavailableError(`The key store is not available: ${describe(error)}.`, error);
  });
}

function inTransaction(database: DatabaseSync, work: () => void): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    work();
    database.exec('COMMIT');
  } finally {
    if (database.isTransaction) database.exec('ROLLBACK');
  }
}

/** Commits without waiting for the disk. The next commit of `inTransaction`, or checkpoint, waits. */
function inUnsyncedTransaction(database: DatabaseSync, work: () => void): void {
  database.exec('PRAGMA synchronous = NORMAL');
  try {
    inTransaction(database, work);
  } finally {
    database.exec('PRAGMA synchronous = FULL');
  }
}

const READERS_REMAIN_MESSAGE =
  'The key store still has somebody who reads what was destroyed, a backup perhaps: its write-ahead file can not be emptied yet.';

/** Returns true if the write-ahead file is empty afterwards. */
const tryTruncateWal = (database: DatabaseSync): boolean =>
  database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0;

/**
 * Waits until neither the write-ahead file nor a page contains destroyed keys. Throws
 * `store_unavailable` if a reader blocks that for too long.
 */
async function truncateWal(database: DatabaseSync): Promise<void> {
  const deadline = performance.now() + BUSY_MS;
  const shouldRetry = (error: unknown): boolean =>
    isTurnlogError(error, 'store_unavailable') && performance.now() < deadline;
  const truncate = async (): Promise<void> => {
    if (!(await retryWhileBusy(() => tryTruncateWal(database))))
      throw storeUnavailableError(READERS_REMAIN_MESSAGE);
  };
  await retry(truncate, { pauses: PAUSES, shouldRetry });
}

/**
 * Opens the text keys in `keys.db` of a data folder. Any number of threads and processes may open
 * it. A commit blocks the thread while the disk writes. Throws `store_unavailable` for a file that
 * is damaged or not a key store.
 */
export async function openSqliteKeyStore({
  folder,
}: {
  folder: string;
}): Promise<KeyStore & KeySource> {
  const database = openKeyDatabase(folder);
  const files = identifyFiles(keyStoreFile(folder));
  const find = database.prepare(FIND);

  function requireSameFiles(): void {
    const change = describeFileChange(files);
    if (change === undefined) return;
    throw storeUnavailableError(`The key store was changed under the running service: ${change}.`);
  }
  // SQLite continues to write to files that were removed or replaced, so check before and after.
  const write = (work: () => void, commit = inTransaction): Promise<void> =>
    retryWhileBusy(() => {
      requireSameFiles();
      commit(database, work);
      requireSameFiles();
    });
  const rows = <Row>(sql: string, ...values: (string | number)[]): Promise<Row[]> =>
    retryWhileBusy(() => database.prepare(sql).all(...values) as Row[]);

  return {
    insert: (keys) =>
      write(() => {
        const insert = database.prepare(INSERT);
        for (const { key_id, master_key_id, wrapped } of keys)
          insert.run(key_id, master_key_id, wrapped);
      }),
    async find(ids) {
      const keyRows = await retryWhileBusy(
        () => find.all(JSON.stringify(ids)) as unknown as KeyRow[],
      );
      return toFoundKeys(keyRows);
    },
    list: ({ after = '', limit }) => rows<WrappedKey>(LIST, after, limit),
    listDestroyed: async ({ after = '', limit }) =>
      (await rows<Pick<KeyRow, 'key_id'>>(DESTROYED, after, limit)).map(({ key_id }) => key_id),
    count: async () => toKeyCounts(await rows<KeyCountRow>(COUNT)),
    rewrap: (keys) =>
      write(() => {
        const rewrap = database.prepare(REWRAP);
        for (const { key_id, master_key_id, wrapped } of keys)
          rewrap.run(master_key_id, wrapped, key_id);
      }),
    beginErasure: (stream, why) =>
      write(() => void database.prepare(NOTE_ERASURE).run(stream, why)),
    listErasures: (limit) => rows<OpenErasure>(OPEN_ERASURES, limit),
    // SQLite writes nothing where nothing changes: a repeated erasure does not wait for the disk.
    async endErasure(stream, keyIds) {
      const deleteNote = (): void => void database.prepare(DELETE_ERASURE_NOTE).run(stream);
      // If its note came back after a power loss, a refused erasure could be performed.
      if (keyIds.length === 0) return write(deleteNote);
      const destroy = (): void => void database.prepare(DESTROY).run(JSON.stringify(keyIds));
      await write(destroy, inUnsyncedTransaction);
      await truncateWal(database);
      // This erasure would only be repeated.
      await write(deleteNote, inUnsyncedTransaction);
    },
    async close() {
      if (database.isOpen) database.close();
    },
  };
}
