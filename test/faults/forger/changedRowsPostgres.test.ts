/** Someone with write access to the read models in PostgreSQL changes rows. */
import { afterAll, describe } from '@jest/globals';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import {
  changedRowsOnPostgres,
  changedRowsSuite,
} from '../../support/stores/forger/changedRows.ts';

const server = await startPostgresServer();
if (server) {
  describe('PostgreSQL', () => changedRowsSuite(() => changedRowsOnPostgres(server.url)));
  afterAll(() => server.close());
} else withoutPostgres('changed rows in PostgreSQL');
