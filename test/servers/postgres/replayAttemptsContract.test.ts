import { afterAll, expect, test } from '@jest/globals';
import { checkConnectivity } from '../../../infra/postgres/connectivityCheck.ts';
import { openPostgresReplayAttempts } from '../../../infra/postgres/replayAttempts.ts';
import { createTestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { replayAttemptsContract } from '../../contracts/replayAttempts.ts';

const server = await startPostgresServer();

if (server) {
  replayAttemptsContract('PostgreSQL', async () => {
    const database = await createTestDatabase(server.url);
    await checkConnectivity(database.url);
    const opened = new AsyncDisposableStack();
    opened.defer(database.drop);
    return {
      open: () => opened.adopt(openPostgresReplayAttempts(database.url), ({ close }) => close()),
      dispose: () => opened.disposeAsync(),
    };
  });

  test('no attempt begins while the database can not be reached', async () => {
    const attempts = openPostgresReplayAttempts('postgresql://127.0.0.1:1/none');
    const turn = { replay_id: 'replay_1', session_id: 'session_1', turn: 1 };
    await expect(attempts.begin(turn)).rejects.toMatchObject({ code: 'store_unavailable' });
    await attempts.close();
  });
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL attempts of replays');
}
