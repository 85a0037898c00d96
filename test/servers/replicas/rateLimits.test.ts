import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { checkConnectivity } from '../../../infra/postgres/connectivityCheck.ts';
import { openRateLimits } from '../../../infra/postgres/rateLimits.ts';
import { createSharedRateLimiter } from '../../../infra/ratelimit/shared.ts';
import {
  createTestDatabase,
  execute,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';

const postgres = await startPostgresServer();
const REPLICAS = 3;
const PER_SECOND = 50;

function suite(serverUrl: string): void {
  let database: TestDatabase;
  let replicas: ReturnType<typeof openRateLimits>[];

  beforeAll(async () => {
    database = await createTestDatabase(serverUrl);
    await checkConnectivity(database.url);
    replicas = Array.from({ length: REPLICAS }, () => openRateLimits(database.url));
  });
  afterAll(async () => {
    for (const { close } of replicas) await close();
    await database.drop();
    await postgres!.close();
  });

  test('three replicas let in about what one key has, not three times as much', async () => {
    const limiters = replicas.map(createSharedRateLimiter);
    // Connections take their time to open.
    for (const { query } of replicas) await query({ text: 'SELECT 1' });
    const began = performance.now();
    let allowed = 0;
    for (let request = 0; performance.now() - began < 3_000; request += 1) {
      const taken = await limiters[request % REPLICAS]!.take('key_1', PER_SECOND);
      if (taken.allowed) allowed += 1;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const seconds = Math.ceil((performance.now() - began) / 1_000) + 1;
    expect(allowed).toBeGreaterThanOrEqual(PER_SECOND);
    expect(allowed / seconds).toBeLessThan(PER_SECOND * 2);
    expect(await execute(database.url, 'SELECT key FROM turnlog.rate_limits')).toEqual([
      { key: 'key_1' },
    ]);
  });
}

if (postgres) describe('the rate limit of a key', () => suite(postgres.url));
else withoutPostgres('the rate limit over PostgreSQL');
