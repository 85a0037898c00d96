import { Pool, type ClientBase } from 'pg';
import { storeUnavailableError } from '../../shared/lib/errors/turnlogError.ts';
import type { KeyStore, OpenErasure, WrappedKey } from '../../shared/ports/keyStore.ts';
import { toFoundKeys, toKeyCounts, type KeyCountRow, type KeyRow } from '../lib/keyRows.ts';
import {
  commitDurably,
  connectPostgres,
  connectionOptions,
  runInTransaction,
} from './connection.ts';
import { withDatabaseErrors, sqlState } from './failures.ts';
import { migrate } from './migrate.ts';

const STATEMENT_MS = 10_000;
const CONNECTIONS = 2;
const PURPOSE = { name: 'turnlog keys', statementMs: STATEMENT_MS } as const;
const UNIQUE_VIOLATION = '23505';

const COLUMNS = 'key_id, master_key_id, wrapped';
const FIND = `SELECT ${COLUMNS} FROM turnlog.text_keys WHERE key_id = ANY($1::text[])`;
const LIST = `SELECT ${COLUMNS} FROM turnlog.text_keys
  WHERE key_id > $1 AND wrapped IS NOT NULL ORDER BY key_id LIMIT $2`;
const COUNT =
  'SELECT master_key_id, count(*)::bigint AS keys FROM turnlog.text_keys GROUP BY master_key_id';
const NEW_KEYS = `unnest($1::text[], $2::text[], $3::text[]) AS given (key_id, master_key_id, hex)`;
const INSERT = `INSERT INTO turnlog.text_keys (${COLUMNS})
  SELECT key_id, master_key_id, decode(hex, 'hex') FROM ${NEW_KEYS}`;
const REWRAP = `UPDATE turnlog.text_keys
  SET master_key_id = given.master_key_id, wrapped = decode(given.hex, 'hex') FROM ${NEW_KEYS}
  WHERE text_keys.key_id = given.key_id AND wrapped IS NOT NULL`;
/**
 * Also records unknown keys as destroyed, so that they stay destroyed if a backup restores them.
 */
const DESTROY = `INSERT INTO turnlog.text_keys (key_id) SELECT DISTINCT unnest($1::text[])
  ON CONFLICT (key_id) DO UPDATE SET master_key_id = NULL, wrapped = NULL
  WHERE text_keys.wrapped IS NOT NULL`;
const NOTE_ERASURE =
  'INSERT INTO turnlog.erasures (stream, why) VALUES ($1, $2) ON CONFLICT DO NOTHING';
const OPEN_ERASURES = 'SELECT stream, why FROM turnlog.erasures ORDER BY n LIMIT $1';
const DELETE_ERASURE_NOTE = 'DELETE FROM turnlog.erasures WHERE stream = $1';
/**
 * Removes the dead rows of destroyed keys. PostgreSQL skips the table, with a warning, if the role
 * does not own it.
 */
const CLEAR = 'VACUUM (SKIP_LOCKED, INDEX_CLEANUP OFF) turnlog.text_keys';

/** The columns of the keys, as query parameters. */
const columnsOf = (keys: readonly WrappedKey[]): string[][] => [
  keys.map(({ key_id }) => key_id),
  keys.map(({ master_key_id }) => master_key_id),
  keys.map(({ wrapped }) => Buffer.from(wrapped).toString('hex')),
];

const idTaken = (error: unknown): unknown =>
  sqlState(error) === UNIQUE_VIOLATION
    ? storeUnavailableError('The key store has one of the new keys already.', error)
    : error;

/** Throws `store_unavailable`, and `configuration_invalid` if the role may not migrate. */
const migrated = (databaseUrl: string): Promise<void> =>
  withDatabaseErrors(async () => {
    const { client, close } = await connectPostgres(databaseUrl, PURPOSE);
    try {
      await migrate(client);
    } finally {
      await close();
    }
  });

/** Runs the work once. After a failure, the next call tries again. */
function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () =>
    (running ??= work().catch((error: unknown) => {
      running = undefined;
      throw error;
    }));
}

/**
 * Opens the text keys in tables that all replicas share. Does not wait for the server: the first
 * use migrates the database. Destroyed keys remain in PostgreSQL's write-ahead log and its backups
 * for as long as these are kept, and in a dead row until a vacuum.
 */
export function openPostgresKeyStore({ databaseUrl }: { databaseUrl: string }): KeyStore {
  const ensureMigrated = once(() => migrated(databaseUrl));
  const pool = new Pool({
    ...connectionOptions(databaseUrl, PURPOSE),
    max: CONNECTIONS,
    allowExitOnIdle: true,
  });
  pool.on('error', () => undefined);

  const rows = <Row extends object>(sql: string, ...values: unknown[]): Promise<Row[]> =>
    withDatabaseErrors(async () => {
      await ensureMigrated();
      return (await pool.query<Row>(sql, values)).rows;
    });
  const durably = (work: (client: ClientBase) => Promise<unknown>): Promise<void> =>
    withDatabaseErrors(async () => {
      await ensureMigrated();
      const client = await pool.connect();
      try {
        await commitDurably(client);
        await runInTransaction(client, () => work(client));
        client.release();
      } catch (error) {
        client.release(true);
        throw idTaken(error);
      }
    });
  const write = (sql: string, ...values: unknown[]): Promise<void> =>
    durably((client) => client.query(sql, values));

  return {
    insert: (keys) => write(INSERT, ...columnsOf(keys)),
    async find(ids) {
      return toFoundKeys(await rows<KeyRow>(FIND, ids));
    },
    list: ({ after = '', limit }) => rows<WrappedKey>(LIST, after, limit),
    count: async () => toKeyCounts(await rows<KeyCountRow>(COUNT)),
    rewrap: (keys) => write(REWRAP, ...columnsOf(keys)),
    beginErasure: (stream, why) => write(NOTE_ERASURE, stream, why),
    listErasures: (limit) => rows<OpenErasure>(OPEN_ERASURES, limit),
    async endErasure(stream, keyIds) {
      let destroyed = 0;
      await durably(async (client) => {
        if (keyIds.length > 0) destroyed = (await client.query(DESTROY, [keyIds])).rowCount ?? 0;
        await client.query(DELETE_ERASURE_NOTE, [stream]);
      });
      // If this vacuum fails, autovacuum removes the dead rows later.
      if (destroyed > 0) await pool.query(CLEAR).catch(() => undefined);
    },
    async close() {
      if (!pool.ending) await pool.end();
    },
  };
}
