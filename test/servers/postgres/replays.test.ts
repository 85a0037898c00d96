/**
 * Replays once more, with the log in EventStoreDB and the read models in PostgreSQL: the same bytes
 * are sent, whatever the stores are.
 */
import { afterAll } from '@jest/globals';
import { startEventStoreDbServer } from '../../support/servers/eventstoredb/eventStoreDbServer.ts';
import { createTestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { useEventStoreDb, usePostgres } from '../../support/stores/testStore.ts';

const postgres = await startPostgresServer();

if (postgres) {
  const database = await createTestDatabase(postgres.url);
  const server = await startEventStoreDbServer();
  useEventStoreDb(server.connectionString);
  usePostgres(database.url);

  await import('../../slow/replays/exact.property.test.ts');

  // After the suite's own: hooks of this kind run in the order in which they were declared.
  afterAll(async () => {
    await database.drop();
    await server.close();
    await postgres.close();
  });
} else {
  withoutPostgres('replays on PostgreSQL');
}
