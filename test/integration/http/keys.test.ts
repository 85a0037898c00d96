import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { SCOPES, type Scope } from '../../../shared/accounts/events.ts';
import { revokeKey } from '../../../shared/accounts/commands.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import { comparable, expectFailure } from '../../support/http/failures.ts';
import { sendSlowly } from '../../support/http/slowSender.ts';
import { exchange, rawRequest } from '../../support/http/rawHttp.ts';
import {
  asOperator,
  clientWith,
  eventually,
  type IssuedKey,
  newKey,
  type WatchedLog,
  watchLog,
} from '../../support/processes/operator.ts';
import {
  apiClient,
  startTestService,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

let service: TestService;
let log: WatchedLog;
let valid: IssuedKey;
beforeAll(async () => {
  service = await startTestService();
  log = await watchLog(service.folder);
  valid = await newKey(service.folder);
  await clientWith(service.url, valid);
});
afterAll(async () => {
  await log.close();
  await service.close();
});

const withKey = (key: string): Promise<Reply> => apiClient(service.url, key).get('/v1/agents');
const revoke = ({ account_id, key_id }: IssuedKey) =>
  asOperator(service.folder, (operator) =>
    revokeKey(operator, { account_id, key_id: 'operator', request_id: 'test' }, key_id),
  );

async function revokedKey(): Promise<string> {
  const key = await newKey(service.folder);
  const client = await clientWith(service.url, key);
  await revoke(key);
  await eventually(
    () => client.get('/v1/models'),
    ({ status }) => status !== 200,
  );
  return key.api_key;
}

async function expiredKey(): Promise<string> {
  const key = await newKey(service.folder, { expiresAt: Date.now() - 1 });
  // A key that was issued later is known: so is this one.
  await clientWith(service.url, await newKey(service.folder));
  return key.api_key;
}

describe('a request', () => {
  test('is answered 401 in one and the same way whatever is wrong with its key', async () => {
    const missing = await apiClient(service.url, undefined).get('/v1/agents');
    expectFailure(missing, 'unauthorized');
    const [, id] = /^tl_(key_\w{26})_/.exec(valid.api_key)!;
    const wrong = {
      empty: '',
      malformed: 'nonsense',
      'of another scheme': `Bearer ${valid.api_key}`,
      unknown: `tl_key_01kahz0b2re5v8k2s4n6t8w0y2_${'0'.repeat(64)}`,
      'with a wrong secret': `tl_${id}_${'0'.repeat(64)}`,
      'with half a secret': valid.api_key.slice(0, -32),
      'in upper case': valid.api_key.toUpperCase(),
      'the stored hash': await asOperator(
        service.folder,
        async (operator) => (await (await operator.readModels()).findApiKey(valid.key_id))!.hash,
      ),
      'twice in one header': `${valid.api_key}, ${valid.api_key}`,
      long: 'k'.repeat(8_000),
      'not ASCII': 'clé-é-ÿ-0123456789',
      revoked: await revokedKey(),
      expired: await expiredKey(),
    };
    for (const [what, key] of Object.entries(wrong))
      expect([what, comparable(await withKey(key))]).toEqual([what, comparable(missing)]);
    expect((await withKey(valid.api_key)).status).toBe(200);
  });

  test('is refused before its path parameters, its query and its body are looked at', async () => {
    const head = await log.head();
    const stranger = apiClient(service.url, 'nonsense');
    for (const answer of [
      await stranger.get('/v1/agents?limit=x'),
      await stranger.get('/v1/agents/x'),
      await stranger.post('/v1/agents', '{'),
      await stranger.post('/v1/agents/x/run', {}),
    ])
      expectFailure(answer, 'unauthorized');
    expect(await log.head()).toBe(head);
  });
});

test('a change whose key is revoked before the last byte of its body arrives is not made', async () => {
  const key = await newKey(service.folder);
  const client = await clientWith(service.url, key);
  const body = JSON.stringify({ name: 'Late', instruction: 'x', model: 'scripted' });
  const headers = [
    ['x-api-key', key.api_key],
    ['content-type', 'application/json'],
    ['connection', 'close'],
  ] as const;
  const head = rawRequest('POST /v1/agents', headers, body).slice(0, -1);
  const late = await sendSlowly(service.url, head, { everyMs: 60_000 });
  // The request is authenticated once it waits for its body.
  await sleep(LIMITS.feed.keyCheckMs);
  await revoke(key);
  await eventually(
    () => client.get('/v1/models'),
    ({ status }) => status === 401,
  );
  const before = await log.head();
  late.socket.write(body.at(-1)!);
  expect(await late.ended()).toMatch(/^HTTP\/1.1 401 /);
  expect(await log.head()).toBe(before);
});

describe('a key', () => {
  const NEEDS: Record<Scope, () => [string, unknown?, string?][]> = {
    'agents:read': () => [['/v1/agents'], ['/v1/agents/x']],
    'agents:write': () => [['/v1/agents', {}]],
    'agents:run': () => [['/v1/agents/x/run', {}]],
    'agents:erase': () => [['/v1/agents/x/erase', '']],
    'sessions:erase': () => [['/v1/sessions/x', '', 'DELETE']],
    'sessions:read': () => [['/v1/sessions'], ['/v1/sessions/x'], ['/v1/sessions/x/events']],
    'webhooks:read': () => [['/v1/webhooks'], ['/v1/webhooks/x'], ['/v1/webhooks/x/attempts']],
    'webhooks:write': () => [
      ['/v1/webhooks', {}],
      ['/v1/webhooks/x/test', {}],
      ['/v1/webhooks/x', {}, 'PATCH'],
      ['/v1/webhooks/x', '', 'DELETE'],
    ],
    'keys:write': () => [
      ['/v1/keys', {}],
      ['/v1/keys'],
      ['/v1/keys/x'],
      ['/v1/keys/x/rotate', {}],
      ['/v1/keys/x', '', 'DELETE'],
    ],
    'accounts:write': () => [['/v1/accounts', {}], ['/v1/accounts']],
    'events:read': () => [['/v1/events?after=0']],
    // Refused for its query: the metrics themselves are no JSON.
    'metrics:read': () => [['/metrics?unknown=1']],
    'audit:read': () => [
      ['/v1/sessions/x/proof'],
      ['/v1/log/tile/0/x'],
      ['/v1/log/tile/entries/x'],
      ['/v1/log/tile/0/999'],
    ],
  };

  test.each(SCOPES)(
    'with the scope %s alone may do what that allows, and is answered 403 elsewhere, with the scope that it lacks',
    async (scope) => {
      const client = await clientWith(
        service.url,
        await newKey(service.folder, { scopes: [scope] }),
      );
      for (const [needed, requests] of Object.entries(NEEDS)) {
        for (const [path, body, method = 'POST'] of requests()) {
          const answer = await (body === undefined
            ? client.get(path)
            : client.send(method, path, body));
          if (needed === scope) expect([200, 400, 404]).toContain(answer.status);
          else expect(expectFailure(answer, 'forbidden').error).toContain(needed);
        }
      }
      expect((await client.get('/v1/models')).status).toBe(200);
      expect((await client.get('/v1/tools')).status).toBe(200);
    },
  );

  test('is valid until the instant at which it expires', async () => {
    // Long enough for a busy machine to have it known before.
    const key = await newKey(service.folder, { expiresAt: Date.now() + 3_000 });
    const client = await clientWith(service.url, key);
    expect((await client.get('/v1/models')).status).toBe(200);
    expectFailure(
      await eventually(
        () => client.get('/v1/models'),
        ({ status }) => status !== 200,
      ),
      'unauthorized',
    );
  });

  test('shows nothing of another key of its account, and serves the same agents', async () => {
    const second = await newKey(service.folder, { account: valid.account_id });
    const [one, other] = [
      apiClient(service.url, valid.api_key),
      await clientWith(service.url, second),
    ];
    const { agent_id } = (
      await one.post('/v1/agents', { name: 'Shared', instruction: 'x', model: 'scripted' })
    ).body.data;
    expect((await other.get(`/v1/agents/${agent_id}`)).status).toBe(200);
    await revoke(second);
    await eventually(
      () => other.get('/v1/models'),
      ({ status }) => status === 401,
    );
    expect((await one.get(`/v1/agents/${agent_id}`)).status).toBe(200);
  });
});

const withHeaders = (headers: Record<string, string>) =>
  apiClient(service.url, undefined).get('/v1/models', headers);

describe('a key in a header', () => {
  test.each<[string, (key: string) => Record<string, string>]>([
    ['in x-api-key', (key) => ({ 'x-api-key': key })],
    ['as a bearer token', (key) => ({ authorization: `Bearer ${key}` })],
    ['as a bearer token in any case', (key) => ({ authorization: `bearer   ${key}` })],
    ['in both', (key) => ({ authorization: `Bearer ${key}`, 'x-api-key': key })],
    [
      'beside a proxy’s own credentials',
      (key) => ({ authorization: 'Basic eDp5', 'x-api-key': key }),
    ],
  ])('is taken %s', async (_what, headersOf) => {
    expect((await withHeaders(headersOf(service.key))).status).toBe(200);
  });

  test.each<[string, (key: string) => string]>([
    ['another scheme', (key) => `Basic ${key}`],
    ['no scheme', (key) => key],
    ['no token', () => 'Bearer '],
    ['two tokens', (key) => `Bearer ${key} ${key}`],
    ['a wrong token', () => 'Bearer x'],
  ])('is not taken from %s, which is answered like any other wrong key', async (_what, valueOf) => {
    const reply = await withHeaders({ authorization: valueOf(service.key) });
    expectFailure(reply, 'unauthorized');
    expect(reply.headers.get('www-authenticate')).toBe('Bearer');
    expect(comparable(reply)).toBe(comparable(await withHeaders({})));
  });

  test('is refused where another one stands beside it, also a second bearer token', async () => {
    const two = await withHeaders({ authorization: 'Bearer other', 'x-api-key': service.key });
    expect(expectFailure(two, 'unauthorized').error).toContain('and another one in Authorization');
    const token = ['authorization', `Bearer ${service.key}`] as const;
    const twice = rawRequest('GET /v1/models', [token, ['authorization', 'Bearer other']]);
    expectFailure((await exchange(service.url, twice))[0]!, 'unauthorized');
  });
});
