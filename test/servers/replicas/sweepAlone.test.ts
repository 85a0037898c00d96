import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { withRetentionLease } from '../../../infra/postgres/leases/retentionLease.ts';
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

function suite(serverUrl: string): void {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase(serverUrl);
  });
  afterAll(async () => {
    await database.drop();
    await postgres!.close();
  });

  test('one process sweeps at a time, and the next one may when it has ended or failed', async () => {
    let end: () => void = () => undefined;
    const began = Promise.withResolvers<void>();
    const first = withRetentionLease(database.url, async () => {
      began.resolve();
      await new Promise<void>((resolve) => void (end = resolve));
      throw new Error('failed');
    });
    await began.promise;
    expect(
      await withRetentionLease(database.url, () => Promise.reject(new Error('not alone'))),
    ).toBe(false);
    end();
    await expect(first).rejects.toThrow('failed');
    let swept = 0;
    expect(await withRetentionLease(database.url, async () => void (swept += 1))).toBe(true);
    expect(swept).toBe(1);
  });

  test('whoever loses its place is told, and the next one takes it', async () => {
    const lost = await new Promise<boolean>((resolve, reject) => {
      withRetentionLease(database.url, async (signal) => {
        const aborted = new Promise((told) => signal.addEventListener('abort', told));
        await execute(
          database.url,
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'turnlog retention'`,
        );
        await aborted;
        resolve(await withRetentionLease(database.url, async () => undefined));
      }).catch(reject);
    });
    expect(lost).toBe(true);
  });
}

if (postgres) describe('sweeping alone', () => suite(postgres.url));
else withoutPostgres('sweeping alone');
