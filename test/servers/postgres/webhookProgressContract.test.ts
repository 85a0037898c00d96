import { afterAll, expect, test } from '@jest/globals';
import {
  acquireWebhookLease,
  openPostgresWebhookProgress,
} from '../../../infra/postgres/webhookProgress.ts';
import type { WebhookProgressStore } from '../../../shared/webhooks/webhookProgress.ts';
import { createTestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { webhookProgressContract } from '../../contracts/webhookProgress.ts';

const server = await startPostgresServer();

const onFailure = (error: unknown): void => {
  throw error;
};

if (server) {
  webhookProgressContract('PostgreSQL', async () => {
    const database = await createTestDatabase(server.url);
    const { signal } = new AbortController();
    const reader = openPostgresWebhookProgress(database.url);
    let active: WebhookProgressStore | undefined;
    return {
      async store() {
        // One process at a time has the lock.
        await active?.close();
        active = await acquireWebhookLease({ databaseUrl: database.url, signal, onFailure });
        return active!;
      },
      reader: () => reader,
      async dispose() {
        await active?.close();
        await reader.close();
        await database.drop();
      },
    };
  });

  test('a second process sends once the first has let go, and the first keeps nothing more', async () => {
    const database = await createTestDatabase(server.url);
    const { signal } = new AbortController();
    const options = { databaseUrl: database.url, signal, onFailure };
    const first = (await acquireWebhookLease(options))!;
    let isSecond = false;
    const waiting = acquireWebhookLease(options).then((store) => {
      isSecond = true;
      return store!;
    });
    await first.save(new Map([['webhook_1', { revision: 0 }]]));
    expect(isSecond).toBe(false);
    await first.close();
    const second = await waiting;
    expect(first.lost.aborted).toBe(true);
    await expect(first.save(new Map([['webhook_1', { revision: 9 }]]))).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    expect(await second.load()).toEqual(new Map([['webhook_1', { revision: 0 }]]));
    await second.close();
    await database.drop();
  });
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL progress of webhooks');
}
