import { rm } from 'node:fs/promises';
import { afterAll } from '@jest/globals';
import { createTestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import { openActive } from '../../support/servers/postgres/postgresProjector.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import {
  testEveryProtectedField,
  type ErasedStores,
} from '../../support/stores/erasure/everyProtectedField.ts';
import { filesHolding } from '../../support/stores/erasure/holding.ts';
import { tablesHolding } from '../../support/stores/erasure/tablesHolding.ts';
import {
  openProtectedStore,
  temporaryFolder,
} from '../../support/stores/sqlite/sqliteEventStore.ts';

const server = await startPostgresServer();
afterAll(() => server?.close());

const open = (serverUrl: string) => async (): Promise<ErasedStores> => {
  const folder = await temporaryFolder();
  const log = await openProtectedStore({ folder });
  const database = await createTestDatabase(serverUrl);
  const projection = await openActive(database.url);
  return {
    log: () => log,
    projection: () => projection,
    placesHolding: (text) => tablesHolding(database.url, text),
    logHolds: async (text) => filesHolding(folder, text).length > 0,
    settle: async () => undefined,
    async close() {
      await projection.close();
      await log.close();
      await database.drop();
      await rm(folder, { recursive: true });
    },
  };
};

if (server) testEveryProtectedField('PostgreSQL', open(server.url));
else withoutPostgres('PostgreSQL');
