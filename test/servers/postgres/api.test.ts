/**
 * The API's suites once more, with the log in EventStoreDB and the read models in PostgreSQL:
 * nothing that a client sees may depend on them.
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

  await import('../../integration/runs/runs.test.ts');
  await import('../../integration/http/contract.test.ts');
  await import('../../integration/http/isolation.test.ts');
  await import('../../integration/http/keys.test.ts');
  await import('../../integration/runs/modelFaults.test.ts');
  await import('../../integration/http/paging.test.ts');
  await import('../../integration/runs/turnRequests.test.ts');
  await import('../../slow/http/forks.property.test.ts');

  // After the suites' own: hooks of this kind run in the order in which they were declared.
  afterAll(async () => {
    await database.drop();
    await server.close();
    await postgres.close();
  });
} else {
  withoutPostgres("the API's suites on PostgreSQL");
}
