/**
 * The generations of the read models, each in its own schema (schema.ts names them). Queries name the
 * live schema. On every replica a statement therefore reads the generation that is live when it begins,
 * and fails if there is none. All functions throw pg's errors.
 */
import type { Client } from 'pg';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { Version } from '../../../shared/readModels/version.ts';
import { runInTransaction } from '../connection.ts';
import { readersLock, SCHEMA_LOCK, writerLock, type GenerationStage } from '../leases/locks.ts';
import { channelOf, schemaOf, VERSIONS_CHANNEL, type GenerationRole } from './schema.ts';

/**
 * Selects a generation of a version: the one of the projector, complete or not, or the one of a
 * rebuild.
 */
export interface GenerationSlot {
  version: Version;
  stage: GenerationStage;
}

function writtenRole({ stage }: GenerationSlot, complete: boolean): GenerationRole {
  if (stage === 'building') return 'building';
  return complete ? 'live' : 'first';
}

/**
 * The schema to write. `complete` is a column of the slot's row: only the first generation of the
 * projector is not live.
 */
export const writtenSchema = (slot: GenerationSlot, complete: boolean): string =>
  schemaOf(slot.version, writtenRole(slot, complete));

type Numbered = Pick<Version, 'number'>;

// Functions of the migrations create, rename and drop schemas. They run as the owner, so that the
// calling role needs no right to do so.

/** Drops one generation of a version, if it exists. */
const dropGeneration = (client: Client, { number }: Numbered, role: GenerationRole) =>
  client.query('SELECT turnlog.drop_generation($1, $2)', [number, role]);

const moveGeneration = (
  client: Client,
  { number }: Numbered,
  [from, to]: [GenerationRole, GenerationRole],
) => client.query('SELECT turnlog.move_generation($1, $2, $3)', [number, from, to]);

/**
 * Records the DDL of a version, unless it is recorded. Only the owner may write it.
 */
export async function recordVersion(client: Client, { number, ddl }: Version): Promise<void> {
  const recorded = await client.query('SELECT FROM turnlog.versions WHERE version = $1', [number]);
  if (recorded.rowCount === 0)
    await client.query('INSERT INTO turnlog.versions (version, ddl) VALUES ($1, $2)', [
      number,
      ddl,
    ]);
}

/** The row of a slot. Its parameters are `slotKey(slot)`. */
export const ROW = 'turnlog.projections WHERE version = $1 AND slot = $2';
/** Reads the checkpoint of a slot, if it has one. Its parameters are `slotKey(slot)`. */
export const CHECKPOINT = `SELECT log_id, event_position AS position, event_id, event_hash FROM ${ROW} AND event_position IS NOT NULL`;
export const slotKey = ({ version, stage }: GenerationSlot): [number, GenerationStage] => [
  version.number,
  stage,
];

/** Makes followers read the position again: positions of two generations can't be compared. */
export const notifyReplaced = (client: Client, version: Version) =>
  client.query(`SELECT pg_notify('${channelOf(version)}', '')`);

async function generationExists(client: Client, slot: GenerationSlot): Promise<boolean> {
  const { rows } = await client.query<{ complete: boolean }>(
    `SELECT complete FROM ${ROW}`,
    slotKey(slot),
  );
  if (!rows[0]) return false;
  const schema = await client.query<{ exists: boolean }>(
    'SELECT to_regnamespace($1) IS NOT NULL AS exists',
    [writtenSchema(slot, rows[0].complete)],
  );
  return schema.rows[0]?.exists === true;
}

/** Creates an empty generation and replaces an existing one. Runs inside a transaction. */
async function createGeneration(client: Client, slot: GenerationSlot): Promise<void> {
  const { version } = slot;
  await recordVersion(client, version);
  const role = writtenRole(slot, false);
  await client.query('SELECT turnlog.make_generation($1, $2)', [version.number, role]);
  await client.query(
    `INSERT INTO turnlog.projections (version, slot, generation) VALUES ($1, $2, 1)
     ON CONFLICT (version, slot) DO UPDATE SET
       generation = projections.generation + 1, position = NULL, complete = false, refused = NULL,
       log_id = NULL, event_position = NULL, event_id = NULL, event_hash = NULL, log_changed = NULL`,
    slotKey(slot),
  );
  await notifyReplaced(client, version);
}

async function withSchemaLock(client: Client, work: () => Promise<void>): Promise<void> {
  await runInTransaction(client, async () => {
    await client.query(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`);
    await work();
  });
}

/**
 * Creates the slot's generation, empty, if it does not exist yet or was deleted by hand.
 */
export async function ensureGeneration(client: Client, slot: GenerationSlot): Promise<void> {
  if (await generationExists(client, slot)) return;
  await withSchemaLock(client, async () => {
    if (!(await generationExists(client, slot))) await createGeneration(client, slot);
  });
}

/** Empties the generation of a rebuild. */
export const emptyBuilding = (client: Client, version: Version): Promise<void> =>
  withSchemaLock(client, () => createGeneration(client, { version, stage: 'building' }));

/** The refused checkpoint of the live generation; undefined while it can be trusted. */
export async function refusedCheckpoint(
  client: Client,
  version: Version,
): Promise<Position | undefined> {
  const { rows } = await client.query<{ refused: Position | null }>(
    `SELECT refused FROM ${ROW}`,
    slotKey({ version, stage: 'live' }),
  );
  return rows[0]?.refused ?? undefined;
}

/** Makes the projector's first generation the live one, unless it is. */
export async function completeFirst(client: Client, version: Version): Promise<void> {
  await runInTransaction(client, async () => {
    const { rowCount } = await client.query(
      `UPDATE turnlog.projections SET complete = true WHERE version = $1 AND slot = $2 AND NOT complete`,
      slotKey({ version, stage: 'live' }),
    );
    if (rowCount === 0) return;
    await moveGeneration(client, version, ['first', 'live']);
    await notifyReplaced(client, version);
    await client.query(`NOTIFY ${VERSIONS_CHANNEL}`);
  });
}

/**
 * Makes the rebuilt generation the live one. Runs inside a transaction that holds the lock on the row of
 * the live generation.
 */
export async function switchGenerations(client: Client, version: Version): Promise<void> {
  for (const role of ['retired', 'first'] as const) await dropGeneration(client, version, role);
  const { rows } = await client.query<{ complete: boolean }>(
    `SELECT complete FROM ${ROW}`,
    slotKey({ version, stage: 'live' }),
  );
  if (rows[0]?.complete) await moveGeneration(client, version, ['live', 'retired']);
  await moveGeneration(client, version, ['building', 'live']);
  await client.query(
    `WITH built AS (DELETE FROM ${ROW} RETURNING position, log_id, event_position, event_id, event_hash)
     UPDATE turnlog.projections
     SET generation = generation + 1, position = built.position, log_id = built.log_id,
       event_position = built.event_position, event_id = built.event_id, event_hash = built.event_hash,
       complete = true, refused = NULL, log_changed = NULL FROM built WHERE version = $1 AND slot = 'live'`,
    slotKey({ version, stage: 'building' }),
  );
  await notifyReplaced(client, version);
}

/** Drops the generation that the live one has replaced. */
export async function dropRetired(client: Client, version: Version): Promise<void> {
  await dropGeneration(client, version, 'retired');
}

/** How long the deletion of a generation waits for its readers, in milliseconds. */
const DROP_WAIT_MS = 250;

/** The position of the last erasure that the projector has applied; '' if there is none. */
async function readLastErasure(client: Client, version: Version): Promise<string> {
  const slot: GenerationSlot = { version, stage: 'live' };
  const live = await client.query<{ complete: boolean }>(
    `SELECT complete FROM ${ROW}`,
    slotKey(slot),
  );
  const schema = writtenSchema(slot, live.rows[0]?.complete ?? false);
  const { rows } = await client.query<{ last: Position | null }>(
    `SELECT max(position) AS last FROM ${schema}.erasures`,
  );
  return rows[0]?.last ?? '';
}

/**
 * Drops the generation of an interrupted rebuild that ends before an erasure and so may contain erased
 * data. A running one will apply the erasure itself, unless it is killed before: resolves with false if
 * there is one. Fails while the generation is being read.
 */
export async function dropUnerasedBuilding(client: Client, version: Version): Promise<boolean> {
  const building = slotKey({ version, stage: 'building' });
  return runInTransaction(client, async () => {
    const lock = `pg_try_advisory_xact_lock(${writerLock(version.number, 'building')})`;
    const [begun] = (
      await client.query<{ position: Position | null; free: boolean }>(
        `SELECT event_position AS position, ${lock} AS free FROM ${ROW}`,
        building,
      )
    ).rows;
    if (!begun?.free) return !begun;
    if ((begun.position ?? '') >= (await readLastErasure(client, version))) return true;
    // A backup may be reading it, and the projector waits meanwhile.
    await client.query(`SET LOCAL lock_timeout = ${DROP_WAIT_MS}`);
    await dropGeneration(client, version, 'building');
    await client.query(`DELETE FROM ${ROW}`, building);
    return true;
  });
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
    await runInTransaction(client, async () => {
      const locks = [
        writerLock(number, 'live'),
        writerLock(number, 'building'),
        readersLock(number),
      ];
      const lockResult = await client.query<{ unused: boolean }>(
        `SELECT ${locks.map((lock) => `pg_try_advisory_xact_lock(${lock})`).join(' AND ')} AS unused`,
      );
      if (!lockResult.rows[0]?.unused) return;
      for (const role of ['live', 'first', 'building', 'retired'] as const)
        await dropGeneration(client, { number }, role);
      await client.query('DELETE FROM turnlog.projections WHERE version = $1', [number]);
    });
  }
}
