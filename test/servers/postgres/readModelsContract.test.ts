import { afterAll } from '@jest/globals';
import { postgresReadModelsFixture } from '../../support/servers/postgres/postgresReadModels.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { readModelsContract } from '../../contracts/readModels.ts';

const server = await startPostgresServer();

if (server) {
  readModelsContract('PostgreSQL', () => postgresReadModelsFixture(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL');
}
