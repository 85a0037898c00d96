import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  clientWith,
  eventually,
  newKey,
  type IssuedKey,
} from '../../support/processes/operator.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { scrape, valueOf } from '../../support/http/metrics.ts';
import { startTestService, type Client, type TestService } from '../../support/http/service.ts';
import { startReceiver, verified, type Receiver } from '../../support/servers/webhookReceiver.ts';
import { LIMITS } from '../../../shared/limits.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ text: 'Hello.' }, { WEBHOOKS_ALLOW_PRIVATE: 'true' });
});
afterAll(() => service.close());

interface Account {
  client: Client;
  key: IssuedKey;
  agent: string;
  receiver: Receiver;
  webhook: string;
  secret: string;
  run(session?: string): Promise<string>;
  shown(): Promise<Record<string, unknown>>;
  change(body: object): Promise<Record<string, unknown>>;
}

/** An account of its own with an agent, a receiver and a webhook to it. */
async function account(body: object = {}): Promise<Account> {
  const key = await newKey(service.folder);
  const client = await clientWith(service.url, key);
  const made = await client.post('/v1/agents', { name: 'A', instruction: 'B.', model: 'scripted' });
  const agent = made.body.data.agent_id as string;
  const receiver = await startReceiver();
  const created = await client.post('/v1/webhooks', { url: receiver.url, ...body });
  expect(created.status).toBe(200);
  const { webhook_id: webhook, secret } = created.body.data;
  const path = `/v1/webhooks/${webhook}`;
  return {
    client,
    key,
    agent,
    receiver,
    webhook,
    secret,
    async run(session_id) {
      const more = session_id === undefined ? {} : { session_id };
      const reply = await client.post(`/v1/agents/${agent}/run`, { input: 'hi', ...more });
      return reply.body.data.session_id as string;
    },
    shown: async () => (await client.get(path)).body.data,
    change: async (change) => (await client.send('PATCH', path, change)).body.data,
  };
}

const typesOf = ({ received }: Receiver): string[] => received.map(({ body }) => body.type);
const came = (receiver: Receiver, count: number): Promise<string[]> =>
  eventually(
    async () => typesOf(receiver),
    (types) => types.length >= count,
  );

const TURN = [
  'turnlog.session.started.v1',
  'turnlog.session.turn_started.v1',
  'turnlog.session.turn_completed.v1',
];

describe('a webhook', () => {
  test('gets the later events of its account, signed, and shows how far it is', async () => {
    const { receiver, run, secret, shown, key, webhook } = await account();
    const session = await run();
    await came(receiver, 3);
    expect(typesOf(receiver)).toEqual(TURN);
    for (const message of receiver.received) {
      const body = verified(message, secret);
      expect(body).toMatchObject({
        specversion: '1.0',
        accountid: key.account_id,
        subject: session,
      });
      expect(message.headers['webhook-id']).toBe(message.body.id);
    }
    expect(receiver.received[2]!.body.data).toMatchObject({ output: 'Hello.', turn: 1 });
    const told = await eventually(
      shown,
      ({ position, lag_ms }) => position !== null && lag_ms === 0,
    );
    expect(told).toMatchObject({ webhook_id: webhook, state: 'active', lag_ms: 0, types: null });
    expect(told).not.toHaveProperty('secret');
    await receiver.close();
  });

  test('gets only the types that it names, others once they are named', async () => {
    const { receiver, run, change } = await account({ types: [TURN[2]] });
    const session = await run();
    await came(receiver, 1);
    expect(typesOf(receiver)).toEqual([TURN[2]]);
    expect(await change({ types: null })).toMatchObject({ types: null });
    await eventually(
      async () => {
        await run(session);
        return typesOf(receiver);
      },
      (types) => types.includes(TURN[1]!),
    );
    await receiver.close();
  });

  test('is sent to again after failures, in order, and says why it fails', async () => {
    const { receiver, run, shown } = await account();
    receiver.answer(500);
    await run();
    const failing = await eventually(shown, ({ state }) => state === 'failing');
    expect(failing).toMatchObject({
      last_error: { message: 'The receiver answered 500.' },
      failing_since: expect.any(String),
    });
    receiver.answer(204);
    const well = await eventually(shown, ({ state }) => state === 'active');
    expect(well).toMatchObject({
      failing_since: null,
      last_error: { message: 'The receiver answered 500.' },
    });
    await came(receiver, 4);
    expect([...new Set(typesOf(receiver))]).toEqual(TURN);
    await receiver.close();
  });

  test('whose receiver is gone is disabled, and goes on where it was once enabled', async () => {
    const { receiver, run, shown, change } = await account();
    receiver.answer(410);
    await run();
    const off = await eventually(shown, ({ state }) => state === 'disabled');
    expect(off).toMatchObject({ disabled_reason: 'gone' });
    const asked = receiver.received.length;
    receiver.answer(204);
    expect(await change({ enabled: true })).toMatchObject({ state: 'active' });
    await came(receiver, asked + 3);
    expect(typesOf(receiver).slice(asked)).toEqual(TURN);
    await receiver.close();
  });

  test('that its account disabled or deleted gets nothing', async () => {
    const { receiver, run, change, client, webhook } = await account();
    expect(await change({ enabled: false })).toMatchObject({
      state: 'disabled',
      disabled_reason: 'request',
    });
    // A merge patch: null resets to the default.
    expect(await change({ enabled: null })).toMatchObject({ state: 'active' });
    await change({ enabled: false });
    const watching = await startReceiver();
    await client.post('/v1/webhooks', { url: watching.url });
    const deleted = await client.send('DELETE', `/v1/webhooks/${webhook}`, '');
    expect(deleted.body.data).toEqual({ webhook_id: webhook });
    expectFailure(await client.get(`/v1/webhooks/${webhook}`), 'webhook_not_found');
    expectFailure(await client.send('DELETE', `/v1/webhooks/${webhook}`, ''), 'webhook_not_found');
    await run();
    await came(watching, 3);
    expect(receiver.received).toEqual([]);
    await Promise.all([receiver.close(), watching.close()]);
  });

  test('gets no text of a session that was erased while the messages waited for an earlier one', async () => {
    const { client, receiver, run } = await account();
    receiver.answer(204, {}, 1_000);
    const session = await run();
    await came(receiver, 1);
    const erased = await client.send('DELETE', `/v1/sessions/${session}`, '');
    expect(erased.status).toBe(200);
    const before = receiver.received.length;
    expect(before).toBeLessThan(TURN.length);
    await came(receiver, TURN.length + 1);
    const later = receiver.received.slice(before).map(({ body }) => body);
    expect(later.map(({ type }) => type)).toEqual([
      ...TURN.slice(before),
      'turnlog.session.erased.v1',
    ]);
    expect(later.at(-2)!.data).toMatchObject({ output: '', erased: true });
    await receiver.close();
  });

  test('of one account is not slowed by the silence of another’s receiver', async () => {
    const [slow, quick] = [await account(), await account()];
    slow.receiver.answer(undefined);
    await Promise.all([slow.run(), slow.run(), quick.run()]);
    await came(quick.receiver, 3);
    expect(slow.receiver.received.length).toBeGreaterThan(0);
    await Promise.all([slow.receiver.close(), quick.receiver.close()]);
  });

  test('goes on after a restart of the service', async () => {
    const { receiver, run, shown, key, agent } = await account();
    const session = await run();
    await came(receiver, 3);
    await eventually(shown, ({ lag_ms, position }) => lag_ms === 0 && position !== null);
    await service.restart();
    const client = await clientWith(service.url, key);
    await client.post(`/v1/agents/${agent}/run`, { input: 'hi', session_id: session });
    await came(receiver, 5);
    expect(typesOf(receiver)).toEqual([...TURN, TURN[1], TURN[2]]);
    await receiver.close();
  });
});

describe('the attempts of a webhook', () => {
  test('are listed, newest first, with their status and their time', async () => {
    const { receiver, run, client, webhook, key } = await account({ types: [TURN[2]] });
    receiver.answer(500);
    const session = await run();
    const path = `/v1/webhooks/${webhook}/attempts`;
    const listAttempts = async () =>
      (await client.get(path)).body.data.attempts as Record<string, unknown>[];
    await eventually(listAttempts, (listed) => listed.length > 0);
    receiver.answer(204);
    await run(session);
    const attempts = await eventually(
      listAttempts,
      (listed) => listed.filter(({ status }) => status === 204).length === 2,
    );
    expect(attempts[0]).toEqual({
      at: expect.stringMatching(/Z$/),
      message_id: receiver.received.at(-1)!.body.id,
      type: TURN[2],
      status: 204,
      error: null,
      duration_ms: expect.any(Number),
    });
    expect(attempts.at(-1)).toMatchObject({ status: 500, error: 'The receiver answered 500.' });
    await service.restart();
    const again = await clientWith(service.url, key);
    expect((await again.get(path)).body.data).toEqual({ webhook_id: webhook, attempts });
    await receiver.close();
  });
});

describe('a test message', () => {
  test('is signed, goes to the webhook at once, and its outcome is the answer', async () => {
    const { receiver, client, webhook, secret, key, shown } = await account();
    await client.send('PATCH', `/v1/webhooks/${webhook}`, { enabled: false });
    const reply = await client.post(`/v1/webhooks/${webhook}/test`, '');
    const [message] = receiver.received;
    expect(reply.body.data).toEqual({
      accepted: true,
      at: expect.stringMatching(/Z$/),
      message_id: message!.headers['webhook-id'],
      type: 'turnlog.webhook.test.v1',
      status: 204,
      error: null,
      duration_ms: expect.any(Number),
    });
    expect(verified(message!, secret)).toMatchObject({
      specversion: '1.0',
      id: message!.headers['webhook-id'],
      type: 'turnlog.webhook.test.v1',
      accountid: key.account_id,
      data: { webhook_id: webhook },
    });
    expect(await shown()).toMatchObject({ state: 'disabled', delivered_at: null });
    await receiver.close();
  });

  test('that is not accepted says why, and does not make the webhook fail', async () => {
    const { receiver, client, webhook, shown } = await account();
    receiver.answer(410);
    const refused = await client.post(`/v1/webhooks/${webhook}/test`, {});
    expect(refused.body.data).toMatchObject({
      accepted: false,
      status: 410,
      error: 'The receiver answered 410.',
    });
    expect(await shown()).toMatchObject({ state: 'active', failing_since: null });
    await receiver.close();
    const unreached = await eventually(
      () => client.post(`/v1/webhooks/${webhook}/test`, {}),
      ({ status }) => status === 200,
    );
    expect(unreached.body.data).toMatchObject({
      accepted: false,
      status: null,
      error: expect.stringContaining('ECONNREFUSED'),
    });
  });

  test('of a repeated request has the same id', async () => {
    const { receiver, client, webhook } = await account();
    const headers = { 'idempotency-key': 'test-1' };
    const path = `/v1/webhooks/${webhook}/test`;
    const send = () =>
      eventually(
        () => client.post(path, '', headers),
        ({ status }) => status === 200,
      );
    const [first, again] = [await send(), await send()];
    expect(again.body.data.message_id).toBe(first.body.data.message_id);
    expect(receiver.received.map(({ body }) => body.id)).toEqual(
      Array(2).fill(first.body.data.message_id),
    );
    await receiver.close();
  });
});

test('the memory of a message is reserved until its receiver has answered', async () => {
  const { receiver, run } = await account();
  const reserved = async (): Promise<number> =>
    valueOf(
      (await scrape(service)).text,
      'turnlog_resource_used_bytes{resource="memory_webhooks"}',
    );
  receiver.answer(undefined);
  await run();
  await came(receiver, 1);
  const { memoryPerByte } = LIMITS.feed;
  expect(await reserved()).toBeGreaterThan(memoryPerByte * receiver.received[0]!.text.length);
  await receiver.close();
  await eventually(reserved, (bytes) => bytes === 0);
});

describe('the address of a webhook', () => {
  test.each([
    ['not a URL', 'example.com/x'],
    ['of another protocol', 'ftp://example.com/x'],
    ['with a password', 'https://me:secret@example.com/x'],
    ['with a fragment', 'https://example.com/x#y'],
    ['with the port 0', 'https://example.com:0/x'],
    ['with an IPv6 zone', 'https://[fe80::1%25eth0]/x'],
    ['with a name that never resolves', 'https://receiver.invalid/x'],
    ['with a label that is too long', `https://${'a'.repeat(64)}.com/x`],
    ['with an empty label', 'https://a..com/x'],
    ['that is too long', `https://example.com/${'x'.repeat(2_048)}`],
    ['that is too long once it is encoded', `https://example.com/${'é'.repeat(2_000)}`],
  ])('is refused: %s', async (_what, url) => {
    const failure = expectFailure(await service.post('/v1/webhooks', { url }), 'invalid_request');
    expect(failure.details).toHaveProperty('url');
  });

  test('and unknown types are refused', async () => {
    const body = { url: 'https://example.com', types: ['turnlog.session.nonsense.v1'] };
    expectFailure(await service.post('/v1/webhooks', body), 'invalid_request');
  });
});

test('an account has no more webhooks than it may, however many are asked for at once', async () => {
  const client = await clientWith(service.url, await newKey(service.folder));
  const most = LIMITS.webhooks.ofAccount;
  const asked = await Promise.all(
    Array.from({ length: most + 5 }, () =>
      client.post('/v1/webhooks', { url: 'http://127.0.0.1:1/x' }),
    ),
  );
  const refused = asked.filter(({ status }) => status !== 200);
  expect(refused.map(({ body }) => body.code)).toEqual(Array(5).fill('webhook_limit_reached'));
  const list = (await client.get('/v1/webhooks')).body.data as { webhook_id: string }[];
  expect(list).toHaveLength(most);
  await client.send('DELETE', `/v1/webhooks/${list[0]!.webhook_id}`, '');
  // Two tries of one request for the last place: it is made once, and both are told so.
  const keyed = { 'idempotency-key': 'for-the-last-place-8e03978e40d5' };
  const tries = await Promise.all(
    [1, 2].map(() => client.post('/v1/webhooks', { url: 'http://127.0.0.1:1/x' }, keyed)),
  );
  expect(tries.map(({ status }) => status)).toEqual([200, 200]);
  expect(tries[0]!.body.data).toEqual(tries[1]!.body.data);
});
