/** A database that a release with other tables, or another logic, works in. */
import { rm } from 'node:fs/promises';
import { Client } from 'pg';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readersLock } from '../../../infra/postgres/locks.ts';
import { openPostgresReadModels } from '../../../infra/postgres/readModels/readModels.ts';
import {
  liveSchema,
  postgresVersion,
  VERSION,
} from '../../../infra/postgres/readModels/version.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import { TABLES } from '../../../shared/readModels/tables.ts';
import { PROJECTION_LOGIC, type Version } from '../../../shared/readModels/version.ts';
import { OLDER_TABLES } from '../../support/projections/olderTables.ts';
import { eventually } from '../../support/processes/operator.ts';
import {
  createTestDatabase,
  execute,
  type TestDatabase,
} from '../../support/postgres/postgresDatabase.ts';
import { readLog } from '../../support/postgres/postgresFaults.ts';
import { openActive, startPostgresProjector } from '../../support/postgres/postgresProjector.ts';
import { startPostgresServer, withoutPostgres } from '../../support/postgres/postgresServer.ts';
import { agentId, appendAgents } from '../../support/projections/projector.ts';
import { temporaryFolder } from '../../support/sqlite/sqliteEventStore.ts';
import { reached } from '../../support/events/history.ts';

const server = await startPostgresServer();
const AGENTS = 5;
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
      expect(await replica.listAgents('acct_1', {})).toHaveLength(AGENTS);
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

  test('a database of the release before the numbers had no order is gone over to, and its read models are dropped', async () => {
    await project(VERSION);
    await execute(
      database.url,
      `DROP SCHEMA ${LIVE} CASCADE;
       CREATE SCHEMA turnlog_v1;
       UPDATE turnlog.projections SET version = 1;
       ALTER TABLE turnlog.projections DROP COLUMN made_at, DROP COLUMN log_id, DROP COLUMN event_position,
         DROP COLUMN event_id, DROP COLUMN event_hash, DROP COLUMN log_changed;
       DELETE FROM turnlog.migrations WHERE number >= 4`,
    );
    await project(VERSION);
    expect(await liveSchemas()).toEqual([LIVE]);
    expect(await replica.listAgents('acct_1', {})).toHaveLength(AGENTS);
  });
}

if (server) {
  describe('versions of the PostgreSQL read models', () => suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('versions of the PostgreSQL read models');
}
