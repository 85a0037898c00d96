import { afterAll } from '@jest/globals';
import { openPostgresInstances } from '../../../infra/postgres/leases/instances.ts';
import { createTestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { instancesContract } from '../../contracts/instances.ts';

const server = await startPostgresServer();

if (server) {
  instancesContract('PostgreSQL', async () => {
    const database = await createTestDatabase(server.url);
    return {
      open: () => openPostgresInstances({ databaseUrl: database.url, beatMs: 50 }),
      dispose: database.drop,
    };
  });
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL instances');
}
