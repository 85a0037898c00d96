import { afterAll, expect, test } from '@jest/globals';
import { openPostgresBroadcast } from '../../../infra/postgres/broadcast.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  createTestDatabase,
  cutConnections,
} from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { eventually } from '../../support/processes/operator.ts';
import { broadcastContract } from '../../contracts/broadcast.ts';

const server = await startPostgresServer();

if (server) {
  broadcastContract('broadcast over PostgreSQL', LIMITS.stream.messages, async () => {
    const database = await createTestDatabase(server.url);
    return {
      join: (name) => openPostgresBroadcast(database.url, name),
      dispose: database.drop,
    };
  });

  test('a member that has lost its connection hears again, and that it may have missed something', async () => {
    const database = await createTestDatabase(server.url);
    const member = openPostgresBroadcast(database.url, 'one');
    let [heard, missed] = [0, 0];
    member.listen(
      () => (heard += 1),
      () => (missed += 1),
    );
    expect([member.connected(), member.send('one', 'x')]).toEqual([false, false]);
    const hears = (): Promise<number> => {
      const before = heard;
      return eventually(
        async () => {
          member.send('one', 'x');
          return heard;
        },
        (count) => count > before,
      );
    };
    await hears();
    expect([member.connected(), missed]).toEqual([true, 1]);
    expect(await cutConnections(database.url, 'broadcast')).toBe(1);
    await hears();
    expect(missed).toBe(2);
    await member.close();
    await database.drop();
  });
  afterAll(server.close);
} else {
  withoutPostgres('broadcast over PostgreSQL');
}
