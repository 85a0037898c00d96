import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { checkConnectivity } from '../../../infra/postgres/connectivityCheck.ts';
import { openPostgresTileReader } from '../../../infra/postgres/tiles/reader.ts';
import {
  createTestDatabase,
  execute,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';

const server = await startPostgresServer();
const doubt = { doubt: 'A witness contradicts it.' };

function suite(serverUrl: string): void {
  let database: TestDatabase;
  let readers: ReturnType<typeof openPostgresTileReader>[];
  beforeEach(async () => {
    database = await createTestDatabase(serverUrl);
    readers = [openPostgresTileReader(database.url), openPostgresTileReader(database.url)];
  });
  afterEach(async () => {
    for (const reader of readers) await reader.close();
    await database.drop();
  });

  test('a process sees the findings of others until they are withdrawn, and not its own', async () => {
    await checkConnectivity(database.url);
    const [one, other] = readers.map(({ findings }) => findings);
    expect(await one!.exchange(doubt)).toEqual([]);
    expect(await other!.exchange(undefined)).toEqual([doubt]);
    expect(await other!.exchange({ trouble: 'It can not sign.' })).toEqual([doubt]);
    expect(await one!.exchange(undefined)).toEqual([{ trouble: 'It can not sign.' }]);
    expect(await other!.exchange(undefined)).toEqual([]);
    await one!.exchange(doubt);
    await one!.withdraw();
    expect(await other!.exchange(undefined)).toEqual([]);
  });

  test('findings of a process that was killed are ignored, and removed by the next report', async () => {
    await checkConnectivity(database.url);
    const [one, other] = readers.map(({ findings }) => findings);
    await one!.exchange(doubt);
    await execute(
      database.url,
      "UPDATE turnlog.tlog_findings SET reported_at = now() - interval '1 minute'",
    );
    expect(await other!.exchange(undefined)).toEqual([]);
    await other!.exchange(doubt);
    const [row] = await execute(
      database.url,
      'SELECT count(*)::int AS count FROM turnlog.tlog_findings',
    );
    expect(row!['count']).toBe(1);
  });

  test('there are none before the first migration', async () => {
    expect(await readers[0]!.findings.exchange(undefined)).toEqual([]);
  });
}

if (server) {
  describe('the findings on the transparency log', () => suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('the findings on the transparency log');
}
