import { afterAll } from '@jest/globals';
import { openTurnSignals } from '../../infra/postgres/turnSignals.ts';
import { createTestDatabase, cutConnections } from '../support/postgres/postgresDatabase.ts';
import { startPostgresServer, withoutPostgres } from '../support/postgres/postgresServer.ts';
import { turnSignalsContract } from './turnSignals.ts';

const server = await startPostgresServer();

if (server) {
  turnSignalsContract('PostgreSQL', async () => {
    const database = await createTestDatabase(server.url);
    return {
      open: () => openTurnSignals(database.url),
      breakConnections: async () => void (await cutConnections(database.url, 'signals')),
      dispose: database.drop,
    };
  });
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL turn signals');
}
