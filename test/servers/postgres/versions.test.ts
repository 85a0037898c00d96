/** A database that a release with other tables, or another logic, works in. */
import { rm } from 'node:fs/promises';
import { Client } from 'pg';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openPostgresInstances } from '../../../infra/postgres/leases/instances.ts';
import { readersLock } from '../../../infra/postgres/leases/locks.ts';
import { openPostgresReadModels } from '../../../infra/postgres/readModels/readModels.ts';
import {
  liveSchema,
  postgresVersion,
  VERSION,
  VERSIONS_CHANNEL,
} from '../../../infra/postgres/readModels/schema.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import type { EventStore, Position } from '../../../shared/ports/eventStore.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import { TABLES } from '../../../shared/readModels/tables.ts';
import { PROJECTION_LOGIC, type Version } from '../../../shared/readModels/version.ts';
import { OLDER_TABLES } from '../../support/stores/projections/olderTables.ts';
import { eventually } from '../../support/processes/operator.ts';
import {
  createTestDatabase,
  execute,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import { readLog } from '../../support/servers/postgres/postgresFaults.ts';
import {
  openActive,
  startPostgresProjector,
} from '../../support/servers/postgres/postgresProjector.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { agentId, appendAgents } from '../../support/stores/projections/projector.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { reached } from '../../support/builders/history.ts';
import { agentsOf } from '../../support/stores/projections/agentsOf.ts';

const server = await startPostgresServer();
const AGENTS = 5;
const WITHIN_MS = 20_000;
const LIVE = liveSchema(VERSION);
const OLDER = postgresVersion(OLDER_TABLES);

function suite(serverUrl: string): void {
  let database: TestDatabase;
  let folder: string;
  let log: EventStore;
  let replica: ReadModels;

  beforeEach(async () => {
    database = await createTestDatabase(serverUrl);
    folder = await temporaryFolder();
    log = await openSqliteEventStore({ folder });
    replica = openPostgresReadModels({ databaseUrl: database.url });
    await appendAgents(log, 0, AGENTS);
  });
  afterEach(async () => {
    await replica.close();
    await log.close();
    await rm(folder, { recursive: true });
    await database.drop();
  });

  /** A projector of that version, which catches up and ends. */
  async function project(version: Version): Promise<void> {
    const store = await openActive(database.url, version);
    const events = await readLog(log);
    await store.apply(events, reached(events.at(-1)!.position));
    await store.complete();
    await store.close();
  }

  /** A replica of that version, as far as others can tell. */
  async function readerOf({ number }: Version): Promise<Client> {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(`SELECT pg_advisory_lock_shared(${readersLock(number)})`);
    return client;
  }

  const liveSchemas = async (): Promise<unknown[]> =>
    (
      await execute(
        database.url,
        "SELECT nspname FROM pg_namespace WHERE nspname ~ '^turnlog_v[0-9]+$' ORDER BY 1",
      )
    ).map(({ nspname }) => nspname);
  const columnsIn = async (version: Version): Promise<unknown[]> =>
    (
      await execute(
        database.url,
        `SELECT column_name FROM information_schema.columns WHERE table_schema = '${liveSchema(version)}' AND table_name = 'agents'`,
      )
    ).map(({ column_name }) => column_name);

  test.each([
    ['a column less', OLDER],
    ['another logic of its projections', postgresVersion(TABLES, PROJECTION_LOGIC + 1)],
  ])(
    'read models of a release with %s answer its replicas while new ones are filled from the log, and go with the last of them',
    async (_, other) => {
      await project(other);
      expect((await columnsIn(other)).includes('component')).toBe(other !== OLDER);
      const older = await readerOf(other);
      const projector = startPostgresProjector({ log, databaseUrl: database.url });
      const found = await eventually(
        () => replica.findAgent(agentId(1)).catch(() => undefined),
        Boolean,
      );
      expect(found).toMatchObject({ component: 'Chat' });
      expect(await agentsOf(replica)).toHaveLength(AGENTS);
      await projector.stop();
      expect(await liveSchemas()).toEqual([liveSchema(other), LIVE].toSorted());
      const { rows } = await older.query(`SELECT count(*) FROM ${liveSchema(other)}.agents`);
      expect(rows).toEqual([{ count: String(AGENTS) }]);
      await older.end();
      await project(VERSION);
      expect(await liveSchemas()).toEqual([LIVE]);
    },
  );

  test('a release that is rolled back leaves those of the newer one, whether they are in use or not', async () => {
    await project(OLDER);
    const older = await readerOf(OLDER);
    await project(VERSION);
    await replica.close();
    await older.end();
    await project(OLDER);
    expect(await liveSchemas()).toEqual([liveSchema(OLDER), LIVE].toSorted());
  });

  test('a release that finds its own dropped makes them again, and drops the other ones only when nobody uses those', async () => {
    await project(OLDER);
    await project(VERSION);
    expect(await liveSchemas()).toEqual([LIVE]);
    const reader = await readerOf(VERSION);
    await replica.close();
    await project(OLDER);
    expect(await liveSchemas()).toEqual([liveSchema(OLDER), LIVE].toSorted());
    await reader.end();
    await project(OLDER);
    expect(await liveSchemas()).toEqual([liveSchema(OLDER)]);
  });

  test('what an instance in the list reads is not dropped, though its connections were cut', async () => {
    await project(OLDER);
    await execute(
      database.url,
      `INSERT INTO turnlog.instances VALUES ('older', now(), now(), ${OLDER.number})`,
    );
    await project(VERSION);
    expect(await liveSchemas()).toEqual([liveSchema(OLDER), LIVE].toSorted());
    await execute(database.url, 'DELETE FROM turnlog.instances');
    await project(VERSION);
    expect(await liveSchemas()).toEqual([LIVE]);
  });

  test('nothing is dropped while an instance has not said what it reads', async () => {
    await project(OLDER);
    await execute(database.url, "INSERT INTO turnlog.instances VALUES ('silent', now(), now())");
    await project(VERSION);
    expect(await liveSchemas()).toEqual([liveSchema(OLDER), LIVE].toSorted());
  });

  test('an instance says with its beat which version it reads', async () => {
    const instances = await openPostgresInstances({ databaseUrl: database.url });
    await instances.register('here');
    await instances.close();
    expect(
      await execute(database.url, 'SELECT instance_id, read_models FROM turnlog.instances'),
    ).toEqual([{ instance_id: 'here', read_models: VERSION.number }]);
  });

  test('a write waits for the versions that other releases answer from, and not for those that nobody does', async () => {
    await project(VERSION);
    await project(OLDER);
    const end = (await log.head())!;
    expect(await replica.untilShown(end, WITHIN_MS)).toBe(true);
    const behind = '0' as Position;
    await execute(
      database.url,
      `UPDATE turnlog.projections SET position = '${behind}' WHERE version = ${OLDER.number}`,
    );
    const older = await readerOf(OLDER);
    await older.query(`NOTIFY ${VERSIONS_CHANNEL}`);
    const waited = async (position: Position, limitMs: number): Promise<number> => {
      const began = performance.now();
      expect(await replica.untilShown(position, limitMs)).toBe(true);
      return performance.now() - began;
    };
    const waitsFor = (position: Position) =>
      eventually(
        () => waited(position, 500),
        (ms) => ms >= 450,
      );
    await waitsFor(end);
    // A version that is late with one write, of a process that was stopped say, slows no other.
    expect(await waited(end, WITHIN_MS)).toBeLessThan(WITHIN_MS / 2);
    await older.query(`NOTIFY ${liveSchema(OLDER)}, '${end}'`);
    const next = await appendAgents(log, AGENTS, AGENTS + 1);
    await execute(database.url, `NOTIFY ${LIVE}, '${next}'`);
    await waitsFor(next);
    await older.query(`NOTIFY ${liveSchema(OLDER)}, '${next}'`);
    expect(await waited(next, WITHIN_MS)).toBeLessThan(WITHIN_MS / 2);
    await older.end();
  });
}

if (server) {
  describe('versions of the PostgreSQL read models', () => suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('versions of the PostgreSQL read models');
}
