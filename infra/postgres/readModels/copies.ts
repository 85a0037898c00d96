/**
 * The copies of the read models, each in a schema of its own: `turnlog_v<version>` is the live one, which every query names, so
 * that whichever replica asks, it is answered from the copy that is live when its statement begins; `…_building` is what a
 * rebuild fills; `…_retired` is what was live before, until it is dropped.
 */
import { readFileSync } from 'node:fs';
import type { Client } from 'pg';
import { transaction } from '../connection.ts';
import { readersLock, SCHEMA_LOCK, writerLock } from '../locks.ts';

/** Of tables.sql: a release with other tables has another number, and fills its own beside those that the release before still uses. */
export const VERSION = 1;

export type Slot = 'live' | 'building';

const liveOf = (version: number): string => `turnlog_v${version}`;
const copiesOf = (version: number): string[] => [liveOf(version), `${liveOf(version)}_building`, `${liveOf(version)}_retired`];
const RETIRED = `${liveOf(VERSION)}_retired`;
export const schemaOf = (slot: Slot): string => (slot === 'live' ? liveOf(VERSION) : `${liveOf(VERSION)}_building`);

/** Told of every checkpoint of the live copy, with its position; and with nothing when something else about it has changed. */
export const CHANNEL = liveOf(VERSION);

const TABLES = readFileSync(new URL('tables.sql', import.meta.url), 'utf8');
/** The row of a copy; to be given $1 = VERSION and $2 = the slot. */
export const ROW = 'turnlog.projections WHERE version = $1 AND slot = $2';

async function isThere(client: Client, slot: Slot): Promise<boolean> {
  const { rows } = await client.query<{ there: boolean }>(`SELECT to_regnamespace($3) IS NOT NULL AND EXISTS (SELECT FROM ${ROW}) AS there`, [VERSION, slot, schemaOf(slot)]);
  return rows[0]?.there === true;
}

/** Makes the copy, empty, unless it is there. Errors: what pg throws. */
export async function ensureCopy(client: Client, slot: Slot): Promise<void> {
  if (await isThere(client, slot)) return;
  await transaction(client, async () => {
    await client.query(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`);
    if (await isThere(client, slot)) return;
    await client.query(`DROP SCHEMA IF EXISTS ${schemaOf(slot)} CASCADE; CREATE SCHEMA ${schemaOf(slot)}; SET LOCAL search_path TO ${schemaOf(slot)}; ${TABLES}`);
    await client.query(
      `INSERT INTO turnlog.projections (version, slot, generation) VALUES ($1, $2, 1)
       ON CONFLICT (version, slot) DO UPDATE SET generation = projections.generation + 1, position = NULL, complete = false`,
      [VERSION, slot],
    );
    await client.query(`SELECT pg_notify('${CHANNEL}', '')`);
  });
}

/** Says that the live copy has caught up once, so that queries may be answered from it. Errors: what pg throws. */
export async function markComplete(client: Client): Promise<void> {
  const { rowCount } = await client.query(`UPDATE turnlog.projections SET complete = true WHERE version = $1 AND slot = $2 AND NOT complete`, [VERSION, 'live']);
  if (rowCount === 0) return;
  await client.query(`SELECT pg_notify('${CHANNEL}', '')`);
}

/** Makes the copy that was built the live one; inside a transaction that holds the lock on the live copy's row. Errors: what pg throws. */
export async function switchCopies(client: Client): Promise<void> {
  await client.query(`DROP SCHEMA IF EXISTS ${RETIRED} CASCADE`);
  await client.query(`ALTER SCHEMA ${schemaOf('live')} RENAME TO ${RETIRED}; ALTER SCHEMA ${schemaOf('building')} RENAME TO ${schemaOf('live')}`);
  await client.query(
    `WITH built AS (DELETE FROM ${ROW} RETURNING position)
     UPDATE turnlog.projections SET generation = generation + 1, position = built.position, complete = true FROM built WHERE version = $1 AND slot = 'live'`,
    [VERSION, 'building'],
  );
  await client.query(`SELECT pg_notify('${CHANNEL}', '')`);
}

/** Drops what the live copy has replaced. Errors: what pg throws. */
export async function dropRetired(client: Client): Promise<void> {
  await client.query(`DROP SCHEMA IF EXISTS ${RETIRED} CASCADE`);
}

/** Drops the copies of older versions that no process writes or reads any more. Errors: what pg throws. */
export async function dropOlderVersions(client: Client): Promise<void> {
  const { rows } = await client.query<{ version: number }>('SELECT DISTINCT version FROM turnlog.projections WHERE version < $1', [VERSION]);
  for (const { version } of rows) {
    await transaction(client, async () => {
      const locks = [writerLock(version, 'live'), writerLock(version, 'building'), readersLock(version)];
      const held = await client.query<{ unused: boolean }>(`SELECT ${locks.map((lock) => `pg_try_advisory_xact_lock(${lock})`).join(' AND ')} AS unused`);
      if (!held.rows[0]?.unused) return;
      for (const schema of copiesOf(version)) await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await client.query('DELETE FROM turnlog.projections WHERE version = $1', [version]);
    });
  }
}
