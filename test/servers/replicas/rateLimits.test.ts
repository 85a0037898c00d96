import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { checkConnectivity } from '../../../infra/postgres/connectivityCheck.ts';
import { openRateLimits } from '../../../infra/postgres/rateLimits.ts';
import { createSharedRateLimiter } from '../../../infra/ratelimit/shared.ts';
import { eventually } from '../../support/processes/operator.ts';
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
    for (const { add } of replicas) await add('key_0', 1);
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
    const select = 'SELECT key FROM turnlog.rate_limits ORDER BY key';
    expect(await execute(database.url, select)).toEqual([{ key: 'key_0' }, { key: 'key_1' }]);
  });

  test('replicas whose clocks differ share their counts, and each second has one', async () => {
    const now = Date.now;
    const addWithClock = async (replica: number, aheadMs: number) => {
      Date.now = () => now() + aheadMs;
      return replicas[replica]!.add('key_2', 1).finally(() => (Date.now = now));
    };
    let last = await addWithClock(0, 3_000);
    const began = performance.now();
    let ended = 0;
    while (performance.now() - began < 2_500) {
      const { requests, msLeft } = await addWithClock(1, 0);
      expect([1, last.requests + 1]).toContain(requests);
      expect(msLeft).toBeLessThanOrEqual(1_000);
      if (requests === 1) ended += 1;
      last = { requests, msLeft };
      await sleep(20);
    }
    expect(ended).toBeGreaterThan(0);
    expect(ended).toBeLessThan(3);
  });

  test('a count that the clock of a database has dated far ahead starts again', async () => {
    const inOneYear = Date.now() + 365 * 24 * 3_600_000;
    const row = `('key_3', 1000, ${inOneYear})`;
    await execute(database.url, `INSERT INTO turnlog.rate_limits VALUES ${row}`);
    expect(await replicas[0]!.add('key_3', 7)).toMatchObject({ requests: 7 });
    expect(await replicas[1]!.add('key_3', 1)).toMatchObject({ requests: 8 });
  });

  test('counts of keys that send nothing any more are removed', async () => {
    const dayAgo = Date.now() - 24 * 3_600_000;
    await execute(database.url, `INSERT INTO turnlog.rate_limits VALUES ('gone', 1, ${dayAgo})`);
    const started = openRateLimits(database.url);
    await started.add('key_4', 1);
    const select = "SELECT key FROM turnlog.rate_limits WHERE key IN ('gone', 'key_4')";
    const isRemoved = (rows: unknown): boolean => (rows as unknown[]).length === 1;
    const left = await eventually(() => execute(database.url, select), isRemoved);
    expect(left).toEqual([{ key: 'key_4' }]);
    await started.close();
  });
}

if (postgres) describe('the rate limit of a key', () => suite(postgres.url));
else withoutPostgres('the rate limit over PostgreSQL');
