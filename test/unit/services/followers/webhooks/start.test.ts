import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  startWebhooks,
  type RunningWebhooks,
} from '../../../../../services/followers/webhooks/start.ts';
import type { DeliveryContext } from '../../../../../services/followers/webhooks/delivery.ts';
import { createFairSemaphore } from '../../../../../shared/lib/concurrency/fairSemaphore.ts';
import { sleep, sleepUntilAborted } from '../../../../../shared/lib/time/sleep.ts';
import type { Position } from '../../../../../shared/ports/eventStore.ts';
import type {
  WebhookChanges,
  WebhookProgress,
} from '../../../../../shared/webhooks/webhookProgress.ts';
import type { PublicEvent } from '../../../../../shared/publicEvents/publicEvent.ts';
import type { WebhookRow } from '../../../../../shared/readModels/tables.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const row = (webhook_id: string, more: Partial<WebhookRow> = {}): WebhookRow => ({
  webhook_id,
  account_id: 'acct_1',
  url: 'https://example.com/',
  secret: 'whsec_',
  types: null,
  disabled: null,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  position: '0' as Position,
  deleted: false,
  erased: false,
  revision: 0,
  ...more,
});

let rows: WebhookRow[];
let pausedReason: string | undefined;
let kept: Map<string, WebhookProgress>;
let followed: string[];
let saving: Promise<void>;
let running: RunningWebhooks;
/** Resolves when the account has an event. */
let event: PromiseWithResolvers<void>;
let sent: number;
/** How often the list of webhooks was read, and how long that takes. */
let [polls, pollMs, largestPage] = [0, 0, 0];
/** Resolves when the deliveries of `acct_slow` may end. */
let slow: PromiseWithResolvers<void>;

const EVENT = {
  id: 'event_1',
  key: 'agent_1',
  time: '2026-01-01T00:00:00.000Z',
} as PublicEvent;

const delivery: DeliveryContext = {
  async *follow({ accountId, signal, cursor = 'none' }) {
    followed.push(accountId === 'acct_1' ? cursor : accountId);
    yield { cursor };
    if (accountId === 'acct_slow') await slow.promise;
    await Promise.race([event.promise, sleepUntilAborted(60_000, { signal })]);
    if (!signal.aborted) yield { cursor: 'event', event: EVENT };
    await sleepUntilAborted(60_000, { signal });
    // As the last messages on their way do.
    await sleepUntilAborted(20, { signal: new AbortController().signal });
    yield { cursor: 'last' };
  },
  async send() {
    sent += 1;
    return { accepted: true, status: 204 };
  },
  bodyOf: () => '',
  isErased: () => false,
  semaphore: createFairSemaphore('test', { permits: 1, bytes: 1 }),
  textsOf: async () => ({ url: '', secret: '' }),
  disable: async () => undefined,
  clock: { now: () => 0 },
  logger: { info: () => {}, warn: () => {}, error: () => {} },
};

beforeEach(() => {
  [rows, pausedReason, followed, kept] = [[], undefined, [], new Map()];
  saving = Promise.resolve();
  [polls, pollMs, largestPage] = [0, 0, 0];
  [event, sent, slow] = [Promise.withResolvers(), 0, Promise.withResolvers()];
});
afterEach(() => {
  slow.resolve();
  return running.close();
});

function start(): void {
  running = startWebhooks({
    delivery,
    readModels: {
      async listEnabledWebhooks(after, limit) {
        if (after === '') polls += 1;
        await sleep(pollMs);
        const enabled = rows.filter(
          ({ webhook_id, deleted, disabled }) =>
            webhook_id > after && !deleted && disabled === null,
        );
        const page = enabled.slice(0, limit);
        largestPage = Math.max(largestPage, page.length);
        return { rows: page, next: enabled.length > limit ? page.at(-1)!.webhook_id : undefined };
      },
      findWebhook: async (id) => rows.find(({ webhook_id }) => webhook_id === id),
    },
    pausedReason: () => pausedReason,
    acquireLeadership: async () => ({
      load: async () => new Map(kept),
      async save(changes: WebhookChanges) {
        await saving;
        for (const [id, progress] of changes)
          if (progress) kept.set(id, progress);
          else kept.delete(id);
      },
      lost: new AbortController().signal,
      close: async () => undefined,
    }),
  });
}

const reason = (said: string | undefined) =>
  eventually(
    async () => running.health(),
    (health) => health.reason === said && health.state === 'active',
  );

test('nothing is sent to what read models tell that are made anew', async () => {
  [rows, pausedReason] = [[row('webhook_1')], 'They are made anew.'];
  start();
  expect(await reason(pausedReason)).toMatchObject({ enabled: 0 });
  expect(followed).toEqual([]);
  pausedReason = undefined;
  await eventually(
    async () => followed,
    (cursors) => cursors.length === 1,
  );
});

test('how far a webhook is is forgotten once it is deleted, and not while nobody knows it', async () => {
  const progress = { revision: 0, cursor: '7' };
  kept = new Map([
    ['webhook_1', progress],
    ['webhook_2', progress],
  ]);
  rows = [row('webhook_2', { deleted: true })];
  start();
  await eventually(
    async () => kept,
    (left) => !left.has('webhook_2'),
  );
  expect([...kept]).toEqual([['webhook_1', progress]]);
  rows = [row('webhook_1')];
  await eventually(
    async () => followed,
    (cursors) => cursors.includes('7'),
  );
});

test('what comes last is kept, though a round of it is on its way', async () => {
  rows = [row('webhook_1')];
  const save = Promise.withResolvers<void>();
  saving = save.promise;
  start();
  await eventually(
    async () => followed,
    (cursors) => cursors.length === 1,
  );
  // The first round has begun, and ends after the end has.
  await sleepUntilAborted(1_200, { signal: new AbortController().signal });
  const closed = running.close();
  setTimeout(save.resolve, 200);
  await closed;
  expect(kept.get('webhook_1')).toMatchObject({ cursor: 'last' });
});

test.each([
  ['disabled', { disabled: 'request', revision: 1 } as const],
  ['deleted', { deleted: true, revision: 1 }],
])('a webhook that was %s since the last poll gets nothing', async (_what, change) => {
  rows = [row('webhook_1')];
  start();
  await eventually(
    async () => followed,
    (cursors) => cursors.length === 1,
  );
  rows = [row('webhook_1', change)];
  event.resolve();
  await eventually(
    async () => running.health(),
    ({ enabled }) => enabled === 0,
  );
  expect(sent).toBe(0);
});

test('a webhook that was changed since the last poll gets the event as it is now', async () => {
  rows = [row('webhook_1')];
  start();
  await eventually(
    async () => followed,
    (cursors) => cursors.length === 1,
  );
  rows = [row('webhook_1', { revision: 1 })];
  event.resolve();
  await eventually(
    async () => sent,
    (count) => count === 1,
  );
  expect(followed).toHaveLength(2);
});

test('a webhook whose deliveries do not end delays neither the start nor the stop of others', async () => {
  const account_id = 'acct_slow';
  rows = [row('webhook_1', { account_id }), row('webhook_2')];
  start();
  await eventually(
    async () => followed,
    (cursors) => cursors.length === 2,
  );
  rows = [row('webhook_1', { account_id, revision: 1 }), row('webhook_3')];
  await eventually(
    async () => followed.length === 3 && running.health(),
    (health) => health && health.enabled === 1,
  );
  rows = [row('webhook_1', { account_id, revision: 2 })];
  await eventually(
    async () => running.health(),
    ({ enabled }) => enabled === 0,
  );
  expect(followed).toEqual([account_id, 'none', 'none']);

  slow.resolve();
  await eventually(
    async () => running.health(),
    ({ enabled }) => enabled === 1,
  );
  // Two changes, one new start, with the latest revision.
  expect(followed).toEqual([account_id, 'none', 'none', account_id]);
});

test('many webhooks are read in pages, and all of them are sent events', async () => {
  rows = Array.from({ length: 600 }, (_, index) => row(`webhook_${1_000 + index}`));
  start();
  await eventually(
    async () => running.health(),
    ({ enabled }) => enabled === 600,
  );
  expect([followed.length, largestPage]).toEqual([600, 250]);
});

test('a list that takes long to read is read less often', async () => {
  pollMs = 100;
  start();
  await sleep(10_000);
  expect(polls).toBeGreaterThan(2);
  expect(polls).toBeLessThan(8);
});

test('changes of a very long list are seen within seconds', async () => {
  pollMs = 1_000;
  start();
  await sleep(30_000);
  expect(polls).toBeGreaterThan(3);
});
