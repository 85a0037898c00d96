import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { routes } from '../../../services/api/features.ts';
import { revokeKey } from '../../../shared/accounts/commands.ts';
import type { Scope } from '../../../shared/accounts/events.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { comparable, expectFailure } from '../../support/http/failures.ts';
import {
  apiClient,
  startTestService,
  type Client,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import { allEvents, openEvents } from '../../support/http/sse.ts';
import { asOperator, clientWith, eventually, newKey } from '../../support/processes/operator.ts';

const LINES = { text: 'Hello there.' };

let service: TestService;
let agent: string;
beforeAll(async () => {
  service = await startTestService(LINES);
  agent = await service.createAgent({ tool: 'calculator', component: 'turnlog-chat' });
});
afterAll(() => service.close());
beforeEach(() => service.model.use(LINES));

const tokenPath = (of = agent): string => `/v1/agents/${of}/chat-tokens`;

interface Issued {
  token: string;
  expires_at: string;
}

async function issue(
  body: object,
  { of = agent, by = service }: { of?: string; by?: Client } = {},
): Promise<Issued> {
  const reply = await by.post(tokenPath(of), body);
  if (reply.status !== 200) throw new Error(JSON.stringify(reply.body));
  return reply.body.data as Issued;
}

/** A client with a new token of an end user. */
const chatOf = async (user: string, more: object = {}): Promise<Client> =>
  apiClient(service.url, (await issue({ user, ...more })).token);

const runPath = (of = agent): string => `/v1/agents/${of}/run`;

async function startSession(by: Client, input = 'Hi'): Promise<string> {
  const { status, body } = await by.post(runPath(), { input });
  expect(status).toBe(200);
  return body.data.session_id as string;
}

/** A session with an open turn, whose model call does not end. */
async function runForever(by: Client): Promise<{ session_id: string; turn: number }> {
  service.model.use({ fault: 'never_answer' });
  const { length } = service.model.requests;
  const { status, body } = await by.post(runPath(), { input: 'Wait' }, { prefer: 'respond-async' });
  expect(status).toBe(202);
  await service.model.received(length + 1);
  return body.data as { session_id: string; turn: number };
}

const streamOf = (token: string, body: object): ReturnType<typeof openEvents> =>
  openEvents(service.url + runPath(), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

/** Sends the request again while the user has sent too many in this second. */
const withinLimit = (request: () => Promise<Reply>): Promise<Reply> =>
  eventually(request, ({ status }) => status !== 429);

/** The same token with changed claims and its old MAC. */
function forge(token: string, changes: object): string {
  const [claims = '', mac] = token.slice('tlc_'.length).split('.');
  const changed = { ...(JSON.parse(Buffer.from(claims, 'base64url').toString()) as object) };
  const text = JSON.stringify(Object.assign(changed, changes));
  return `tlc_${Buffer.from(text).toString('base64url')}.${mac}`;
}

describe('issuing', () => {
  test('answers with the token, its end, and the component that the agent names', async () => {
    const before = Date.now();
    const { status, body } = await service.post(tokenPath(), { user: 'ada' });
    expect(status).toBe(200);
    expect(body.data).toEqual({
      token: expect.stringMatching(/^tlc_[\w-]+\.[\w-]{43}$/),
      expires_at: expect.any(String),
      agent_id: agent,
      component: 'turnlog-chat',
    });
    const end = Date.parse(body.data.expires_at as string);
    expect(end).toBeGreaterThanOrEqual(before + 900_000);
    expect(end).toBeLessThanOrEqual(Date.now() + 900_000);
    expect(body.data.token).not.toContain('ada');
  });

  test('names the field of a request that is not valid', async () => {
    for (const [body, field] of [
      [{}, 'user'],
      [{ user: 'ada', session_id: 7 }, 'session_id'],
      [{ user: 'ada', session_id: '' }, 'session_id'],
      [{ user: '' }, 'user'],
      [{ user: 'x'.repeat(257) }, 'user'],
      [{ user: 7 }, 'user'],
      [{ user: 'ada', expires_in_seconds: 0 }, 'expires_in_seconds'],
      [{ user: 'ada', expires_in_seconds: 3_601 }, 'expires_in_seconds'],
      [{ user: 'ada', scopes: [] }, 'scopes'],
    ] as const) {
      const { details } = expectFailure(await service.post(tokenPath(), body), 'invalid_request');
      expect(Object.keys(details!)).toEqual([field]);
    }
  });

  test('needs an agent, and a session of that agent, of the account', async () => {
    const other = await clientWith(service.url, await newKey(service.folder));
    expectFailure(await other.post(tokenPath(), { user: 'ada' }), 'agent_not_found');
    const session_id = await startSession(service);
    const otherAgent = await service.createAgent();
    expectFailure(
      await service.post(tokenPath(otherAgent), { user: 'ada', session_id }),
      'session_not_found',
    );
    expectFailure(
      await service.post(tokenPath(), { user: 'ada', session_id: 'x' }),
      'session_not_found',
    );
  });

  test('needs a key with the scopes that the token has', async () => {
    const keyWith = async (scopes: Scope[]): Promise<Client> => {
      const { account_id } = await asOperator(
        service.folder,
        async (operator) => (await (await operator.readModels()).findAgent(agent))!,
      );
      return clientWith(service.url, await newKey(service.folder, { account: account_id, scopes }));
    };
    for (const scopes of [['sessions:read'], ['agents:run']] as Scope[][]) {
      const refused = await (await keyWith(scopes)).post(tokenPath(), { user: 'ada' });
      expect(expectFailure(refused, 'forbidden').error).toMatch(/agents:run|sessions:read/);
    }
    await issue({ user: 'ada' }, { by: await keyWith(['sessions:read', 'agents:run']) });
  });

  test('ends a token with the key that issued it', async () => {
    const expiresAt = Date.now() + 60_000;
    const key = await newKey(service.folder, { expiresAt });
    const by = await clientWith(service.url, key);
    const created = await by.post('/v1/agents', {
      name: 'A',
      instruction: 'B',
      model: 'scripted',
    });
    const of = created.body.data.agent_id as string;
    const { expires_at } = await issue({ user: 'ada' }, { of, by });
    expect(Date.parse(expires_at)).toBe(expiresAt);
  });

  test('can be repeated with the same Idempotency-Key', async () => {
    const key = { 'idempotency-key': randomUUID() };
    const first = await service.post(tokenPath(), { user: 'ada' }, key);
    const second = await service.post(tokenPath(), { user: 'ada' }, key);
    expect([first.status, second.status]).toEqual([200, 200]);
    const chat = apiClient(service.url, second.body.data.token as string);
    await startSession(chat);
  });
});

describe('a token', () => {
  test('runs the agent, and reads, streams and cancels turns of its sessions', async () => {
    const chat = await chatOf('reader');
    const session_id = await startSession(chat, 'First');
    const again = await chat.post(runPath(), { input: 'Second', session_id });
    expect(again.body.data.session_id).toBe(session_id);
    const transcript = await chat.get(`/v1/sessions/${session_id}`);
    expect(transcript.body.data.turns.map(({ input }: { input: string }) => input)).toEqual([
      'First',
      'Second',
    ]);
    expect((await chat.get(`/v1/sessions/${session_id}/turns/2`)).status).toBe(200);
    const open = await runForever(chat);
    const path = `/v1/sessions/${open.session_id}`;
    const cancelled = await chat.post(`${path}/cancel`, { turn: 1 });
    expect(cancelled.body.data.status).toBe('interrupted');
    const { token } = await issue({ user: 'reader' });
    const headers = { authorization: `Bearer ${token}` };
    const stream = await openEvents(`${service.url}/v1/sessions/${session_id}/turns/2/stream`, {
      headers,
    });
    expect((await allEvents(stream)).at(-1)).toMatchObject({
      event: 'turn.completed',
      data: { data: { output: LINES.text } },
    });
  });

  test('streams a run, whose session a later token of the user continues', async () => {
    const { token } = await issue({ user: 'streamer' });
    const events = await allEvents(await streamOf(token, { input: 'Hi' }));
    expect(events.at(-1)!.event).toBe('turn.completed');
    const { session_id } = events[0]!.data as { session_id: string };
    const later = await chatOf('streamer');
    expect((await later.post(runPath(), { input: 'And?', session_id })).status).toBe(200);
  });

  test("does not show the model's reasoning, which its key sees", async () => {
    service.model.use([
      {
        reasoning: 'Secret thoughts.',
        tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }],
      },
      { reasoning: 'Secret doubts.', text: '2' },
    ]);
    const { token } = await issue({ user: 'curious' });
    const headers = { authorization: `Bearer ${token}` };
    const started = await allEvents(await streamOf(token, { input: '1+1?' }));
    const { session_id } = started[0]!.data as { session_id: string };
    const path = `/v1/sessions/${session_id}`;
    const streamed = async (as: Record<string, string>) =>
      allEvents(await openEvents(`${service.url}${path}/turns/1/stream`, { headers: as }));
    const reads = (by: Client) =>
      Promise.all(
        [path, `${path}/turns/1`].map(
          async (read) => (await by.get(`${read}?reasoning=true`)).body.data as object,
        ),
      );
    const seen = [
      started,
      await streamed(headers),
      ...(await reads(apiClient(service.url, token))),
    ].map((part) => JSON.stringify(part));
    for (const text of seen) {
      expect(text).toContain('calculator');
      expect(text).not.toMatch(/reasoning|Secret/);
    }
    for (const part of [await streamed({ 'x-api-key': service.key }), ...(await reads(service))])
      for (const text of ['reasoning', 'Secret thoughts.', 'Secret doubts.'])
        expect(JSON.stringify(part)).toContain(text);
  });

  test('does not read, stream, cancel or continue sessions of anyone else', async () => {
    const victims = await chatOf('victim');
    const attacker = await chatOf('attacker');
    const otherAgent = await service.createAgent();
    const elsewhere = await issue({ user: 'attacker' }, { of: otherAgent });
    const reply = await apiClient(service.url, elsewhere.token).post(runPath(otherAgent), {
      input: 'Hi',
    });
    const open = await runForever(victims);
    service.model.use(LINES);
    const unknown = 'session_01kahz0b2re5v8k2s4n6t8w0y2';
    const sessions = [
      await startSession(victims),
      open.session_id,
      await startSession(service),
      // Of the same user with another agent.
      reply.body.data.session_id as string,
      'x',
    ];
    const requests = (id: string): (() => ReturnType<Client['get']>)[] => [
      () => attacker.get(`/v1/sessions/${id}`),
      () => attacker.get(`/v1/sessions/${id}/turns/1`),
      () => attacker.get(`/v1/sessions/${id}/turns/1/stream`),
      () => attacker.post(`/v1/sessions/${id}/cancel`, { turn: 1 }),
      () => attacker.post(runPath(), { input: 'Hi', session_id: id }),
    ];
    const expected = await Promise.all(requests(unknown).map((request) => request()));
    for (const id of sessions)
      for (const [at, request] of requests(id).entries()) {
        const refused = await withinLimit(request);
        expectFailure(refused, 'session_not_found');
        expect(comparable(refused)).toBe(comparable(expected[at]!));
      }
    const turn = await victims.get(`/v1/sessions/${open.session_id}/turns/1`);
    expect(turn.body.data.status).toBe('running');
    await victims.post(`/v1/sessions/${open.session_id}/cancel`, {});
  });

  test('does not read a fork of a session of its user, which a key has made', async () => {
    const chat = await chatOf('forked');
    const session_id = await startSession(chat);
    const fork = await service.post(`/v1/sessions/${session_id}/fork`, { at_turn: 1 });
    const forked = fork.body.data.session_id as string;
    expectFailure(await chat.get(`/v1/sessions/${forked}`), 'session_not_found');
  });

  test('for one session runs and reads that one, and starts no other', async () => {
    const session_id = await startSession(service);
    const { token } = await issue({ user: 'ada', session_id });
    const chat = apiClient(service.url, token);
    expect((await chat.post(runPath(), { input: 'More', session_id })).status).toBe(200);
    expect((await chat.get(`/v1/sessions/${session_id}`)).body.data.turns).toHaveLength(2);
    expectFailure(await chat.post(runPath(), { input: 'New' }), 'forbidden');
    const other = await startSession(service);
    expectFailure(await chat.get(`/v1/sessions/${other}`), 'session_not_found');
    const run = { input: 'More', session_id: other };
    expectFailure(await chat.post(runPath(), run), 'session_not_found');
  });

  test('is refused by every operation that does not name what it must be for', async () => {
    let chat!: Client;
    const accepting: string[] = [];
    for (const [index, route] of routes.entries()) {
      // Fewer than a user may send in a second.
      if (index % 10 === 0) chat = await chatOf(`prober ${index}`);
      if (route.access === 'open') continue;
      if (route.chatTarget) {
        accepting.push(route.operationId);
        continue;
      }
      const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
        name === 'agentId' ? agent : 'x',
      );
      const { method } = route;
      const reply = await withinLimit(() =>
        method === 'get' ? chat.get(path) : chat.send(method.toUpperCase(), path, {}),
      );
      expect([route.operationId, reply.body.code]).toEqual([route.operationId, 'forbidden']);
    }
    expect(accepting.toSorted()).toEqual([
      'cancelTurn',
      'getSession',
      'getTurn',
      'runAgent',
      'streamTurn',
    ]);
  });

  test('runs no other agent', async () => {
    const chat = await chatOf('ada');
    const other = await service.createAgent();
    for (const id of [other, 'agent_01kahz0b2re5v8k2s4n6t8w0y2', 'x'])
      expectFailure(await chat.post(runPath(id), { input: 'Hi' }), 'forbidden');
  });

  test('does not get the answer of another user who chose the same Idempotency-Key', async () => {
    const key = { 'idempotency-key': 'message-1' };
    const [ada, bob] = [await chatOf('key-ada'), await chatOf('key-bob')];
    const sessions: string[] = [];
    for (const chat of [ada, bob, ada]) {
      const { body, headers } = await chat.post(runPath(), { input: 'Same' }, key);
      expect(headers.get('idempotency-replayed')).toBe(sessions.length === 2 ? 'true' : null);
      sessions.push(body.data.session_id as string);
    }
    expect(sessions[0]).not.toBe(sessions[1]);
    expect(sessions[2]).toBe(sessions[0]);
  });

  test('of a user is limited without the others', async () => {
    const [flooder, other] = [await chatOf('flooder'), await chatOf('calm')];
    const replies = await Promise.all(
      Array.from({ length: 40 }, () => flooder.get('/v1/sessions/x')),
    );
    const limited = replies.find(({ status }) => status === 429)!;
    expectFailure(limited, 'rate_limited');
    expect(limited.headers.get('retry-after')).toBe('1');
    await startSession(other);
  });

  test('has a limited number of open streams, without the others', async () => {
    const [hoarder, other] = [await chatOf('hoarder'), await chatOf('frugal')];
    const { session_id } = await runForever(hoarder);
    const { token } = await issue({ user: 'hoarder' });
    const stream = `${service.url}/v1/sessions/${session_id}/turns/1/stream`;
    const streams: Awaited<ReturnType<typeof openEvents>>[] = [];
    const openStream = async (): Promise<number> => {
      const opened = await openEvents(stream, { headers: { authorization: `Bearer ${token}` } });
      if (opened.status === 200) streams.push(opened);
      return opened.status;
    };
    while (streams.length < LIMITS.chatTokens.openRequests)
      await eventually(openStream, (status) => status === 200);
    const refused = await eventually(
      () => hoarder.get(`/v1/sessions/${session_id}`),
      ({ body }) => body.error?.includes('open requests') === true,
    );
    expectFailure(refused, 'rate_limited');
    service.model.use(LINES);
    await startSession(other);
    for (const { leave } of streams) leave();
    const later = () => hoarder.post(`/v1/sessions/${session_id}/cancel`, {});
    expect((await withinLimit(later)).status).toBe(200);
  });

  test('has a limited number of runs, also without their clients, and the others have theirs', async () => {
    const [runner, other] = [await chatOf('runner'), await chatOf('walker')];
    const { session_id } = await runForever(runner);
    for (let runs = 2; runs < LIMITS.chatTokens.runs; runs += 1) await runForever(runner);
    const { token } = await issue({ user: 'runner' });
    const { length } = service.model.requests;
    const stream = await streamOf(token, { input: 'Wait' });
    await service.model.received(length + 1);
    stream.leave();
    const run = () => runner.post(runPath(), { input: 'More' }, { prefer: 'respond-async' });
    const refused = expectFailure(await run(), 'rate_limited');
    expect(refused.error).toContain(`${LIMITS.chatTokens.runs} runs at once`);
    service.model.use(LINES);
    await startSession(other);
    await startSession(service);
    await runner.post(`/v1/sessions/${session_id}/cancel`, {});
    expect((await withinLimit(run)).status).toBe(202);
  });
});

describe('the session of a token', () => {
  test('records the issuing key, and an HMAC in place of the user', async () => {
    const chat = await chatOf('ada@example.com');
    const session_id = await startSession(chat);
    const { body } = await service.get(`/v1/sessions/${session_id}/events`);
    const text = JSON.stringify(body);
    expect(text).not.toContain('ada@example.com');
    type Started = { data: { user_hmac: string }; metadata: { key_id: string } };
    const [started] = body.data as Started[];
    expect(started!.data.user_hmac).toMatch(/^[\w-]{43}$/);
    const byKey = await service.get(`/v1/sessions/${await startSession(service)}/events`);
    const [ofKey] = byKey.body.data as Started[];
    expect(started!.metadata.key_id).toBe(ofKey!.metadata.key_id);
    expect(ofKey!.data.user_hmac).toBeUndefined();
  });
});

describe('401', () => {
  const path = '/v1/sessions/session_01kahz0b2re5v8k2s4n6t8w0y2';

  test('is the answer to a forged or damaged token', async () => {
    const { token } = await issue({ user: 'ada' });
    const stranger = await newKey(service.folder);
    await clientWith(service.url, stranger);
    const flipped = `${token.slice(0, -2)}${token.at(-2) === 'A' ? 'B' : 'A'}${token.at(-1)}`;
    const forgeries = [
      flipped,
      forge(token, { user_hmac: 'x' }),
      forge(token, { agent_id: 'agent_01kahz0b2re5v8k2s4n6t8w0y2' }),
      forge(token, { expires_at: 1e15 }),
      // A key of another account: its MAC has another secret.
      forge(token, { key_id: stranger.key_id }),
      forge(token, { key_id: 'key_01kahz0b2re5v8k2s4n6t8w0y2' }),
      forge(token, { key_id: { $ne: '' } }),
      token.slice(0, -1),
      `${token}A`,
      token.replace(/\.[\w-]+$/, '.'),
      token.replace(/\..*$/, ''),
      'tlc_',
      'tlc_bm90IGpzb24.' + 'A'.repeat(43),
      'tlc_bnVsbA.' + 'A'.repeat(43),
      `tlc_${'A'.repeat(7_000)}.${'A'.repeat(43)}`,
    ];
    const [first, ...others] = await Promise.all(
      forgeries.map((forged) => apiClient(service.url, forged).get(path)),
    );
    expectFailure(first!, 'unauthorized');
    for (const refused of others)
      if (refused.status !== 429) expect(comparable(refused)).toBe(comparable(first!));
    // The token itself is still good.
    expectFailure(await apiClient(service.url, token).get(path), 'session_not_found');
  });

  test('is the answer once a token has expired, which is no failed login', async () => {
    const chat = await chatOf('late', { expires_in_seconds: 1 });
    const refused = await eventually(
      () => chat.get(path),
      ({ status }) => status === 401,
    );
    expect(expectFailure(refused, 'unauthorized').error).toMatch(/expired.*Request a new token/);
    // Failed logins of an address are delayed after the first ones, and then rejected.
    const more = await Promise.all(Array.from({ length: 60 }, () => chat.get(path)));
    expect(new Set(more.map(({ status }) => status))).toEqual(new Set([401]));
  });

  test('is the answer once the issuing key is revoked', async () => {
    const key = await newKey(service.folder);
    const by = await clientWith(service.url, key);
    const created = await by.post('/v1/agents', { name: 'A', instruction: 'B', model: 'scripted' });
    const of = created.body.data.agent_id as string;
    const chat = apiClient(service.url, (await issue({ user: 'ada' }, { of, by })).token);
    expect((await chat.post(runPath(of), { input: 'Hi' })).status).toBe(200);
    await asOperator(service.folder, (operator) =>
      revokeKey(
        operator,
        { account_id: key.account_id, key_id: 'operator', request_id: 'test' },
        key.key_id,
      ),
    );
    const refused = await eventually(
      () => chat.post(runPath(of), { input: 'Hi' }),
      ({ status }) => status !== 200,
    );
    expectFailure(refused, 'unauthorized');
  });

  test('is the answer once the agent is deleted or erased', async () => {
    for (const [method, suffix] of [
      ['DELETE', ''],
      ['POST', '/erase'],
    ] as const) {
      const of = await service.createAgent();
      const { token } = await issue({ user: 'ada' }, { of });
      const chat = apiClient(service.url, token);
      expect((await chat.post(runPath(of), { input: 'Hi' })).status).toBe(200);
      const ending = `/v1/agents/${of}${suffix}`;
      const erase = await service.send(method, ending, '');
      expect(erase.status).toBe(200);
      expectFailure(await chat.post(runPath(of), { input: 'Hi' }), 'unauthorized');
    }
  });
});

describe('an open stream', () => {
  /** A run that goes on after its stream has ended. */
  async function streamSlowly(token: string) {
    const pieces = Array.from({ length: 20 }, (_, at) => `${at} `);
    service.model.use({ text: pieces.join(''), pieces, piece_delay_ms: 100 });
    const events = await allEvents(await streamOf(token, { input: 'Count' }));
    service.model.use(LINES);
    return { events, whole: pieces.join('') };
  }

  test('ends when the token expires, and another token continues it', async () => {
    const { token } = await issue({ user: 'long', expires_in_seconds: 1 });
    const { events, whole } = await streamSlowly(token);
    expect(events.map(({ event }) => event)).not.toContain('turn.completed');
    const { session_id } = events[0]!.data as { session_id: string };
    const fresh = await issue({ user: 'long' });
    const rest = await openEvents(`${service.url}/v1/sessions/${session_id}/turns/1/stream`, {
      headers: {
        authorization: `Bearer ${fresh.token}`,
        'last-event-id': events.at(-1)!.id!,
      },
    });
    const all = [...events, ...(await allEvents(rest))];
    const text = all.map(({ event, data }) => (event === 'output.delta' ? data.text : '')).join('');
    expect(text).toBe(whole);
    expect(all.at(-1)!.event).toBe('turn.completed');
  });

  test('ends when the agent is deleted', async () => {
    const of = await service.createAgent();
    const { token } = await issue({ user: 'long' }, { of });
    const pieces = Array.from({ length: 80 }, (_, at) => `${at} `);
    service.model.use({ text: pieces.join(''), pieces, piece_delay_ms: 100 });
    const stream = await openEvents(service.url + runPath(of), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ input: 'Count' }),
    });
    const heard: (string | undefined)[] = [];
    for await (const { event } of stream.events) {
      if (heard.length === 2) await service.send('DELETE', `/v1/agents/${of}`, '');
      heard.push(event);
    }
    expect(heard).not.toContain('turn.completed');
  });
});

test('tokens survive a restart', async () => {
  const chat = await issue({ user: 'survivor' });
  const session_id = await startSession(apiClient(service.url, chat.token));
  await service.restart();
  const after = apiClient(service.url, chat.token);
  expect((await after.get(`/v1/sessions/${session_id}`)).status).toBe(200);
});
