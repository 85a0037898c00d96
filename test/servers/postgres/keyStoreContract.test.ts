import { afterAll } from '@jest/globals';
import { openPostgresKeyStore } from '../../../infra/postgres/keyStore.ts';
import { createTestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { keyStoreContract } from '../../contracts/keyStore.ts';

const server = await startPostgresServer();

if (server) {
  keyStoreContract('PostgreSQL', async () => {
    const database = await createTestDatabase(server.url);
    return {
      open: async () => openPostgresKeyStore({ databaseUrl: database.url }),
      dispose: database.drop,
    };
  });
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL key store');
}
