/** Projectors of one database of which one was given another log. */
import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  openPostgresReadModels,
  type PostgresReadModels,
} from '../../../infra/postgres/readModels/readModels.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import {
  createTestDatabase,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import { startPostgresProjector } from '../../support/servers/postgres/postgresProjector.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { eventually } from '../../support/processes/operator.ts';
import { appendAgents, recordingLogger } from '../../support/stores/projections/projector.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { agentsOf } from '../../support/stores/projections/agentsOf.ts';

const server = await startPostgresServer();
const SOON = 20_000;

function suite(serverUrl: string): void {
  let database: TestDatabase;
  let folders: string[];
  let right: EventStore;
  let wrong: EventStore;
  let replica: PostgresReadModels;

  beforeEach(async () => {
    database = await createTestDatabase(serverUrl);
    folders = [await temporaryFolder(), await temporaryFolder()];
    [right, wrong] = (await Promise.all(
      folders.map((folder) => openSqliteEventStore({ folder })),
    )) as [EventStore, EventStore];
    replica = openPostgresReadModels({ databaseUrl: database.url });
  });
  afterEach(async () => {
    await replica.close();
    await Promise.all([right.close(), wrong.close()]);
    await Promise.all(folders.map((folder) => rm(folder, { recursive: true })));
    await database.drop();
  });

  function projector(log: EventStore) {
    const { lines, logger } = recordingLogger();
    return { ...startPostgresProjector({ log, databaseUrl: database.url, logger }), lines };
  }

  test('a projector with another log says so once, and leaves the place to one with the right log', async () => {
    const first = projector(right);
    expect(await replica.untilShown(await appendAgents(right, 0, 5), SOON)).toBe(true);
    await first.stop();
    await appendAgents(wrong, 0, 9);

    const mistaken = projector(wrong);
    await eventually(async () => replica.logChanged(), Boolean);
    const next = projector(right);
    expect(await replica.untilShown(await appendAgents(right, 5, 7), SOON)).toBe(true);
    await eventually(
      async () => replica.logChanged(),
      (reason) => reason === undefined,
    );
    expect((await agentsOf(replica)).length).toBe(7);

    await next.stop();
    await eventually(async () => replica.logChanged(), Boolean);
    await mistaken.stop();
    const said = mistaken.lines.map(({ message }) => message);
    const reasons = said.filter((line) => line.startsWith('The read models do not follow'));
    expect(reasons).toEqual([
      expect.stringContaining('0000000000000005'),
      expect.stringContaining('0000000000000007'),
    ]);
    expect(said.filter((line) => line.includes('gives up leadership'))).toHaveLength(1);
  });
}

if (server) {
  describe('PostgreSQL projectors of two logs', () => suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL projectors of two logs');
}
