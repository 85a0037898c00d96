/**
 * The generations of the read models, each in a schema of its own (version.ts names them). Every
 * query names the live one, so that whichever replica asks, it is answered from the generation that
 * is live when its statement begins, and refused where none is. Errors: all functions here throw
 * what pg throws.
 */
import type { Client } from 'pg';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { Version } from '../../../shared/readModels/version.ts';
import { transaction } from '../connection.ts';
import { readersLock, SCHEMA_LOCK, writerLock, type Stage } from '../leases/locks.ts';
import { channelOf, schemaOf, VERSIONS_CHANNEL, type Role } from './schema.ts';

/**
 * Which generation of a version is meant: the projector's, whether it is complete or not, or a
 * rebuild's.
 */
export interface Place {
  version: Version;
  stage: Stage;
}

function writtenRole({ stage }: Place, complete: boolean): Role {
  if (stage === 'building') return 'building';
  return complete ? 'live' : 'first';
}

/**
 * The schema that is written. `complete` is of the place's row: only the projector's first
 * generation is not live.
 */
export const writtenSchema = (place: Place, complete: boolean): string =>
  schemaOf(place.version, writtenRole(place, complete));

type Numbered = Pick<Version, 'number'>;

// Schemas are made, renamed and dropped by functions of the migrations, which do so as the owner:
// the role that asks need not have the right.

/** Drops one generation of a version, if it is there. */
export const dropGeneration = (client: Client, { number }: Numbered, role: Role) =>
  client.query('SELECT turnlog.drop_generation($1, $2)', [number, role]);

const moveGeneration = (client: Client, { number }: Numbered, [from, to]: [Role, Role]) =>
  client.query('SELECT turnlog.move_generation($1, $2, $3)', [number, from, to]);

/**
 * Notes how the tables of a version are made, which only the owner may; nothing where that is known
 * already.
 */
export async function noteVersion(client: Client, { number, ddl }: Version): Promise<void> {
  const known = await client.query('SELECT FROM turnlog.versions WHERE version = $1', [number]);
  if (known.rowCount === 0)
    await client.query('INSERT INTO turnlog.versions (version, ddl) VALUES ($1, $2)', [
      number,
      ddl,
    ]);
}

/** The row of a place; to be given `keyOf(place)`. */
export const ROW = 'turnlog.projections WHERE version = $1 AND slot = $2';
/** Reads the checkpoint of a place, where it has one; to be given `keyOf(place)`. */
export const CHECKPOINT = `SELECT log_id, event_position AS position, event_id, event_hash FROM ${ROW} AND event_position IS NOT NULL`;
export const keyOf = ({ version, stage }: Place): [number, Stage] => [version.number, stage];

/** The positions of two generations can't be compared, so whoever waits is to look anew. */
export const tellReplaced = (client: Client, version: Version) =>
  client.query(`SELECT pg_notify('${channelOf(version)}', '')`);

async function isThere(client: Client, place: Place): Promise<boolean> {
  const { rows } = await client.query<{ complete: boolean }>(
    `SELECT complete FROM ${ROW}`,
    keyOf(place),
  );
  if (!rows[0]) return false;
  const found = await client.query<{ there: boolean }>(
    'SELECT to_regnamespace($1) IS NOT NULL AS there',
    [writtenSchema(place, rows[0].complete)],
  );
  return found.rows[0]?.there === true;
}

/** Makes an empty generation in place of any there is; inside a transaction. */
async function make(client: Client, place: Place): Promise<void> {
  const { version } = place;
  await noteVersion(client, version);
  const role = writtenRole(place, false);
  await client.query('SELECT turnlog.make_generation($1, $2)', [version.number, role]);
  await client.query(
    `INSERT INTO turnlog.projections (version, slot, generation) VALUES ($1, $2, 1)
     ON CONFLICT (version, slot) DO UPDATE SET
       generation = projections.generation + 1, position = NULL, complete = false, refused = NULL,
       log_id = NULL, event_position = NULL, event_id = NULL, event_hash = NULL, log_changed = NULL`,
    keyOf(place),
  );
  await tellReplaced(client, version);
}

async function underLock(client: Client, work: () => Promise<void>): Promise<void> {
  await transaction(client, async () => {
    await client.query(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`);
    await work();
  });
}

/**
 * Makes the place's generation, empty, unless it is there: nobody has yet, or it was deleted by
 * hand.
 */
export async function ensureGeneration(client: Client, place: Place): Promise<void> {
  if (await isThere(client, place)) return;
  await underLock(client, async () => {
    if (!(await isThere(client, place))) await make(client, place);
  });
}

/** Empties the generation that a rebuild fills. */
export const emptyBuilding = (client: Client, version: Version): Promise<void> =>
  underLock(client, () => make(client, { version, stage: 'building' }));

/** The checkpoint of the live generation that was given up; undefined where it can be trusted. */
export async function refusedCheckpoint(
  client: Client,
  version: Version,
): Promise<Position | undefined> {
  const { rows } = await client.query<{ refused: Position | null }>(
    `SELECT refused FROM ${ROW}`,
    keyOf({ version, stage: 'live' }),
  );
  return rows[0]?.refused ?? undefined;
}

/** Makes the projector's first generation the live one, unless it is. */
export async function completeFirst(client: Client, version: Version): Promise<void> {
  await transaction(client, async () => {
    const { rowCount } = await client.query(
      `UPDATE turnlog.projections SET complete = true WHERE version = $1 AND slot = $2 AND NOT complete`,
      keyOf({ version, stage: 'live' }),
    );
    if (rowCount === 0) return;
    await moveGeneration(client, version, ['first', 'live']);
    await tellReplaced(client, version);
    await client.query(`NOTIFY ${VERSIONS_CHANNEL}`);
  });
}

/**
 * Makes the generation that was built the live one; inside a transaction that holds the lock on the
 * row of the live one.
 */
export async function switchGenerations(client: Client, version: Version): Promise<void> {
  for (const role of ['retired', 'first'] as const) await dropGeneration(client, version, role);
  const { rows } = await client.query<{ complete: boolean }>(
    `SELECT complete FROM ${ROW}`,
    keyOf({ version, stage: 'live' }),
  );
  if (rows[0]?.complete) await moveGeneration(client, version, ['live', 'retired']);
  await moveGeneration(client, version, ['building', 'live']);
  await client.query(
    `WITH built AS (DELETE FROM ${ROW} RETURNING position, log_id, event_position, event_id, event_hash)
     UPDATE turnlog.projections
     SET generation = generation + 1, position = built.position, log_id = built.log_id,
       event_position = built.event_position, event_id = built.event_id, event_hash = built.event_hash,
       complete = true, refused = NULL, log_changed = NULL FROM built WHERE version = $1 AND slot = 'live'`,
    keyOf({ version, stage: 'building' }),
  );
  await tellReplaced(client, version);
}

/** Drops what the live generation has replaced. */
export async function dropRetired(client: Client, version: Version): Promise<void> {
  await dropGeneration(client, version, 'retired');
}

/**
 * The versions that were first made before this one and that no listed instance reads. There are none
 * while a listed instance has not reported its version.
 */
async function listUnreadVersions(client: Client, { number }: Version): Promise<number[]> {
  const { rows } = await client.query<{ version: number }>(
    `SELECT version FROM turnlog.projections GROUP BY version
     HAVING min(made_at) < (SELECT min(made_at) FROM turnlog.projections WHERE version = $1)
       AND NOT EXISTS (SELECT FROM turnlog.instances WHERE coalesce(read_models, version) = version)`,
    [number],
  );
  return rows.map(({ version }) => version);
}

/**
 * Drops the older versions that no process writes or reads any more; during a rollout, replicas of the
 * previous release answer from theirs. Locks show connected processes, the list of instances those that
 * a restart of the server has just cut off. A release that is rolled back keeps the newer version, which
 * is younger than its own; if its own was dropped, it is made again and is then the younger one.
 */
export async function dropOlderVersions(client: Client, version: Version): Promise<void> {
  for (const number of await listUnreadVersions(client, version)) {
    await transaction(client, async () => {
      const locks = [
        writerLock(number, 'live'),
        writerLock(number, 'building'),
        readersLock(number),
      ];
      const held = await client.query<{ unused: boolean }>(
        `SELECT ${locks.map((lock) => `pg_try_advisory_xact_lock(${lock})`).join(' AND ')} AS unused`,
      );
      if (!held.rows[0]?.unused) return;
      for (const role of ['live', 'first', 'building', 'retired'] as const)
        await dropGeneration(client, { number }, role);
      await client.query('DELETE FROM turnlog.projections WHERE version = $1', [number]);
    });
  }
}
