import { expect, test } from '@jest/globals';
import { createUnregisteredPool } from '../../../../shared/lib/concurrency/capacity.ts';
import { testWebhook } from '../../../../shared/webhooks/testWebhook.ts';
import type { WebhookRow } from '../../../../shared/readModels/tables.ts';

const WEBHOOK_ID = 'webhook_01kahz2d4tg7x0n4w6r8y0a2b4';

function setUp(allowed: boolean, stopping = new AbortController()) {
  const sent: string[] = [];
  const asked: unknown[] = [];
  const row = {
    webhook_id: WEBHOOK_ID,
    account_id: 'acct_1',
    deleted: false,
    url: 'u',
    secret: 's',
  };
  const permits = createUnregisteredPool({ permits: 2, bytes: Infinity });
  const context = {
    readModels: { findWebhook: async () => row as WebhookRow },
    store: { readStream: async () => [], keys: { find: async () => new Map() } },
    clock: { now: () => 0 },
    ids: { uuid: () => 'e1' },
    rateLimiter: {
      take: async (...args: unknown[]) => {
        asked.push(args);
        return { allowed, remaining: 0, resetMs: 1 };
      },
    },
    stopping: stopping.signal,
    eventSource: '/turnlog',
    webhooks: {
      tests: {
        permits,
        send: async ({ id, signal }: { id: string; signal: AbortSignal }) => {
          sent.push(id);
          signal.throwIfAborted();
          return { accepted: true, status: 200 };
        },
      },
    },
  };
  return { sent, asked, permits, context: context as never };
}

test('is limited per account, and nothing is sent beyond the limit', async () => {
  const { sent, asked, permits, context } = setUp(false);
  await expect(testWebhook(context, { account_id: 'acct_1' }, WEBHOOK_ID)).rejects.toMatchObject({
    code: 'rate_limited',
    retryAfterSeconds: 1,
  });
  expect(asked).toEqual([['webhook_tests acct_1', 1]]);
  expect(sent).toEqual([]);
  expect(permits.activeCount()).toBe(0);
});

test('takes a permit while it is sent, and sends nothing without one', async () => {
  const { sent, permits, context } = setUp(true);
  const permit = permits.acquire({ account_id: 'acct_1', bytes: 0 });
  await expect(testWebhook(context, { account_id: 'acct_1' }, WEBHOOK_ID)).rejects.toMatchObject({
    code: 'rate_limited',
  });
  permit.release();
  expect(await testWebhook(context, { account_id: 'acct_1' }, WEBHOOK_ID)).toMatchObject({
    message_id: 'e1',
    status: 200,
    error: null,
  });
  expect(sent).toEqual(['e1']);
  expect(permits.activeCount()).toBe(0);
});

test('of another account is not found', async () => {
  const { sent, context } = setUp(true);
  await expect(testWebhook(context, { account_id: 'acct_2' }, WEBHOOK_ID)).rejects.toMatchObject({
    code: 'webhook_not_found',
  });
  expect(sent).toEqual([]);
});

test('that a stop of the service cuts off is no defect: it can be sent again', async () => {
  const stopping = new AbortController();
  const { permits, context } = setUp(true, stopping);
  stopping.abort();
  await expect(testWebhook(context, { account_id: 'acct_1' }, WEBHOOK_ID)).rejects.toMatchObject({
    code: 'store_unavailable',
    retriable: true,
  });
  expect(permits.activeCount()).toBe(0);
});
