/**
 * The copies of the read models, each in a schema of its own. Every query names `turnlog_v<version>`, the live one, so that
 * whichever replica asks, it is answered from the copy that is live when its statement begins, and refused where none is.
 * `…_first` is what the projector fills until it has caught up for the first time, `…_building` what a rebuild fills,
 * `…_retired` what was live before, until it is dropped. Copies change places by being renamed.
 */
import { readFileSync } from 'node:fs';
import type { Client } from 'pg';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { transaction } from '../connection.ts';
import { SCHEMA_LOCK } from '../locks.ts';

/** Of tables.sql: a release with other tables has another number, and fills its own beside those that the release before still uses. */
export const VERSION = 1;

/** `live` is the projector's, whether it is complete or not; `building` a rebuild's. */
export type Slot = 'live' | 'building';

const schemasOf = (version: number) => {
  const live = `turnlog_v${version}`;
  return { live, first: `${live}_first`, building: `${live}_building`, retired: `${live}_retired` };
};
const SCHEMAS = schemasOf(VERSION);

/** The schema that queries name. */
export const LIVE = SCHEMAS.live;
/** Told the position of every checkpoint of the live copy, and nothing when it was replaced. */
export const CHANNEL = LIVE;

/** All schemas that a version may have. */
export const allSchemasOf = (version: number): string[] => Object.values(schemasOf(version));

/** The schema that is written. `complete` is of the slot's row: only the projector's first copy is not live. */
export function writtenSchema(slot: Slot, complete: boolean): string {
  if (slot === 'building') return SCHEMAS.building;
  return complete ? SCHEMAS.live : SCHEMAS.first;
}

const TABLES = readFileSync(new URL('tables.sql', import.meta.url), 'utf8');
/** The row of a slot; to be given $1 = VERSION and $2 = the slot. */
export const ROW = 'turnlog.projections WHERE version = $1 AND slot = $2';

const tell = (client: Client) => client.query(`SELECT pg_notify('${CHANNEL}', '')`);

async function isThere(client: Client, slot: Slot): Promise<boolean> {
  const { rows } = await client.query<{ complete: boolean }>(`SELECT complete FROM ${ROW}`, [
    VERSION,
    slot,
  ]);
  if (!rows[0]) return false;
  const found = await client.query<{ there: boolean }>(
    'SELECT to_regnamespace($1) IS NOT NULL AS there',
    [writtenSchema(slot, rows[0].complete)],
  );
  return found.rows[0]?.there === true;
}

/** Makes the slot's copy, empty, in place of any there is; inside a transaction. */
async function makeCopy(client: Client, slot: Slot): Promise<void> {
  const schema = writtenSchema(slot, false);
  await client.query(
    `DROP SCHEMA IF EXISTS ${schema} CASCADE; CREATE SCHEMA ${schema}; SET LOCAL search_path TO ${schema}; ${TABLES}`,
  );
  await client.query(
    `INSERT INTO turnlog.projections (version, slot, generation) VALUES ($1, $2, 1)
     ON CONFLICT (version, slot) DO UPDATE SET
       generation = projections.generation + 1, position = NULL, complete = false, refused = NULL`,
    [VERSION, slot],
  );
  await tell(client);
}

/** Makes the slot's copy, empty, unless it is there: nobody has yet, or it was deleted by hand. Errors: what pg throws. */
export async function ensureCopy(client: Client, slot: Slot): Promise<void> {
  if (await isThere(client, slot)) return;
  await transaction(client, async () => {
    await client.query(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`);
    if (!(await isThere(client, slot))) await makeCopy(client, slot);
  });
}

/** Empties the copy that a rebuild fills. Errors: what pg throws. */
export async function emptyBuilding(client: Client): Promise<void> {
  await transaction(client, async () => {
    await client.query(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`);
    await makeCopy(client, 'building');
  });
}

/** The checkpoint of the live copy that was given up; undefined where it can be trusted. Errors: what pg throws. */
export async function refusedCheckpoint(
  client: Pick<Client, 'query'>,
): Promise<Position | undefined> {
  const { rows } = await client.query<{ refused: Position | null }>(`SELECT refused FROM ${ROW}`, [
    VERSION,
    'live',
  ]);
  return rows[0]?.refused ?? undefined;
}

/** Makes the projector's first copy the live one, unless it is. Errors: what pg throws. */
export async function completeFirstCopy(client: Client): Promise<void> {
  await transaction(client, async () => {
    const { rowCount } = await client.query(
      `UPDATE turnlog.projections SET complete = true WHERE version = $1 AND slot = $2 AND NOT complete`,
      [VERSION, 'live'],
    );
    if (rowCount === 0) return;
    await client.query(`ALTER SCHEMA ${SCHEMAS.first} RENAME TO ${SCHEMAS.live}`);
    await tell(client);
  });
}

/** Makes the copy that was built the live one; inside a transaction that holds the lock on the row of the slot `live`. Errors: what pg throws. */
export async function switchCopies(client: Client): Promise<void> {
  await client.query(
    `DROP SCHEMA IF EXISTS ${SCHEMAS.retired} CASCADE; DROP SCHEMA IF EXISTS ${SCHEMAS.first} CASCADE`,
  );
  const { rows } = await client.query<{ complete: boolean }>(`SELECT complete FROM ${ROW}`, [
    VERSION,
    'live',
  ]);
  if (rows[0]?.complete)
    await client.query(`ALTER SCHEMA ${SCHEMAS.live} RENAME TO ${SCHEMAS.retired}`);
  await client.query(`ALTER SCHEMA ${SCHEMAS.building} RENAME TO ${SCHEMAS.live}`);
  await client.query(
    `WITH built AS (DELETE FROM ${ROW} RETURNING position)
     UPDATE turnlog.projections
     SET generation = generation + 1, position = built.position, complete = true, refused = NULL FROM built WHERE version = $1 AND slot = 'live'`,
    [VERSION, 'building'],
  );
  await tell(client);
}

/** Drops what the live copy has replaced. Errors: what pg throws. */
export async function dropRetired(client: Client): Promise<void> {
  await client.query(`DROP SCHEMA IF EXISTS ${SCHEMAS.retired} CASCADE`);
}
