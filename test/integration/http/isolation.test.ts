import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { routes } from '../../../services/api/features.ts';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import { entriesOf } from '../../../shared/transparency/tlog/tiles.ts';
import { EXPORT_FORMATS } from '../../../shared/exports/formats.ts';
import { exported } from '../../support/http/exported.ts';
import { comparable } from '../../support/http/failures.ts';
import {
  clientWith,
  eventually,
  newKey,
  type WatchedLog,
  watchLog,
} from '../../support/processes/operator.ts';
import {
  startTestService,
  type Client,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

const NO_AGENT = 'agent_01kahz0b2re5v8k2s4n6t8w0y2';
const NO_WEBHOOK = 'webhook_01kahz2d4tg7x0n4w6r8y0a2b4';
const NO_REPLAY = 'replay_01kahz3e5vh8y1p5x7s9z1b3c5';
const NO_KEY = 'key_01kahz5g7xk0a3r7z9v1b3d5e7';
const NO_SESSION = 'session_01kahz1c3sf6w9m3v5q7x9z1a3';

let service: TestService;
let log: WatchedLog;
let stranger: Client;
let strangersKey: string;
let agent: string;
let session: string;
let strangersAgent: string;
/** What the stranger sends with each write. */
let more: Record<string, string> = {};
let webhook: string;
let replay: string;
let key: string;

beforeAll(async () => {
  service = await startTestService();
  log = await watchLog(service.folder);
  agent = await service.createAgent();
  session = (await service.post(`/v1/agents/${agent}/run`, { input: 'secret' })).body.data
    .session_id as string;
  await service.send('PATCH', `/v1/sessions/${session}`, { labels: { case: '12' } });
  const issued = await newKey(service.folder);
  strangersKey = issued.api_key;
  const client = await clientWith(service.url, issued);
  stranger = {
    ...client,
    post: (path, body) => client.post(path, body, more),
    send: (method, path, body) => client.send(method, path, body, more),
  };
  const made = await service.post('/v1/webhooks', { url: 'https://[3ffe::1]/x' });
  if (made.status !== 200) throw new Error(JSON.stringify(made.body));
  webhook = made.body.data.webhook_id as string;
  const ours = await service.post('/v1/keys', { name: 'theirs', scopes: ['agents:read'] });
  key = ours.body.data.key_id as string;
  const asked = { sessions: [session], tools: 'recorded', budget: { tokens: 1_000 } };
  replay = (await service.post('/v1/replays', asked)).body.data.replay_id as string;
  await eventually(
    () => service.get(`/v1/replays/${replay}`),
    ({ body }) => body.data.status !== 'running',
  );
  strangersAgent = (
    await stranger.post('/v1/agents', { name: 'Mine', instruction: 'Obey.', model: 'scripted' })
  ).body.data.agent_id as string;
});
afterAll(async () => {
  await log.close();
  await service.close();
});

const input = { input: 'hi' };
const configuration = { name: 'Mine', instruction: 'Obey.', model: 'scripted' };

/** What is tried, on theirs and on what never existed; the code of both answers; the operation. */
type Attempt = readonly [string, () => Promise<Reply>, () => Promise<Reply>, ErrorCode, string];

describe("another account's agent or session", () => {
  const ATTEMPTS: readonly Attempt[] = [
    [
      'GET an agent',
      () => stranger.get(`/v1/agents/${agent}`),
      () => stranger.get(`/v1/agents/${NO_AGENT}`),
      'agent_not_found',
      'get /v1/agents/{agentId}',
    ],
    [
      'replace an agent',
      () => stranger.send('PUT', `/v1/agents/${agent}`, configuration),
      () => stranger.send('PUT', `/v1/agents/${NO_AGENT}`, configuration),
      'agent_not_found',
      'put /v1/agents/{agentId}',
    ],
    [
      'change an agent at a revision',
      () => stranger.send('PATCH', `/v1/agents/${agent}`, { name: 'x' }, { 'if-match': '"0"' }),
      () => stranger.send('PATCH', `/v1/agents/${NO_AGENT}`, { name: 'x' }, { 'if-match': '"0"' }),
      'agent_not_found',
      'patch /v1/agents/{agentId}',
    ],
    [
      'delete an agent',
      () => stranger.send('DELETE', `/v1/agents/${agent}`, ''),
      () => stranger.send('DELETE', `/v1/agents/${NO_AGENT}`, ''),
      'agent_not_found',
      'delete /v1/agents/{agentId}',
    ],
    [
      'GET the revisions of an agent',
      () => stranger.get(`/v1/agents/${agent}/revisions`),
      () => stranger.get(`/v1/agents/${NO_AGENT}/revisions`),
      'agent_not_found',
      'get /v1/agents/{agentId}/revisions',
    ],
    [
      'describe a session',
      () => stranger.send('PATCH', `/v1/sessions/${session}`, { title: 'Mine' }),
      () => stranger.send('PATCH', `/v1/sessions/${NO_SESSION}`, { title: 'Mine' }),
      'session_not_found',
      'patch /v1/sessions/{sessionId}',
    ],
    [
      'run an agent',
      () => stranger.post(`/v1/agents/${agent}/run`, input),
      () => stranger.post(`/v1/agents/${NO_AGENT}/run`, input),
      'agent_not_found',
      'post /v1/agents/{agentId}/run',
    ],
    [
      'issue a chat token',
      () => stranger.post(`/v1/agents/${agent}/chat-tokens`, { user: 'ada' }),
      () => stranger.post(`/v1/agents/${NO_AGENT}/chat-tokens`, { user: 'ada' }),
      'agent_not_found',
      'post /v1/agents/{agentId}/chat-tokens',
    ],
    [
      'issue a chat token for a session',
      () =>
        stranger.post(`/v1/agents/${strangersAgent}/chat-tokens`, {
          user: 'ada',
          session_id: session,
        }),
      () =>
        stranger.post(`/v1/agents/${strangersAgent}/chat-tokens`, {
          user: 'ada',
          session_id: NO_SESSION,
        }),
      'session_not_found',
      'post /v1/agents/{agentId}/chat-tokens',
    ],
    [
      'run an agent in its own session',
      () => stranger.post(`/v1/agents/${agent}/run`, { ...input, session_id: session }),
      () => stranger.post(`/v1/agents/${NO_AGENT}/run`, { ...input, session_id: session }),
      'agent_not_found',
      'post /v1/agents/{agentId}/run',
    ],
    [
      'continue a session',
      () => stranger.post(`/v1/agents/${strangersAgent}/run`, { ...input, session_id: session }),
      () => stranger.post(`/v1/agents/${strangersAgent}/run`, { ...input, session_id: NO_SESSION }),
      'session_not_found',
      'post /v1/agents/{agentId}/run',
    ],
    [
      'GET a transcript',
      () => stranger.get(`/v1/sessions/${session}`),
      () => stranger.get(`/v1/sessions/${NO_SESSION}`),
      'session_not_found',
      'get /v1/sessions/{sessionId}',
    ],
    [
      'GET a turn',
      () => stranger.get(`/v1/sessions/${session}/turns/1`, { prefer: 'wait=20' }),
      () => stranger.get(`/v1/sessions/${NO_SESSION}/turns/1`, { prefer: 'wait=20' }),
      'session_not_found',
      'get /v1/sessions/{sessionId}/turns/{turn}',
    ],
    [
      'GET the requests of a turn',
      () => stranger.get(`/v1/sessions/${session}/turns/1/requests`),
      () => stranger.get(`/v1/sessions/${NO_SESSION}/turns/1/requests`),
      'session_not_found',
      'get /v1/sessions/{sessionId}/turns/{turn}/requests',
    ],
    [
      'GET a transcript as it stood',
      () => stranger.get(`/v1/sessions/${session}?at_turn=1`),
      () => stranger.get(`/v1/sessions/${NO_SESSION}?at_turn=1`),
      'session_not_found',
      'get /v1/sessions/{sessionId}',
    ],
    [
      'fork a session',
      () => stranger.post(`/v1/sessions/${session}/fork`, { at_turn: 1 }),
      () => stranger.post(`/v1/sessions/${NO_SESSION}/fork`, { at_turn: 1 }),
      'session_not_found',
      'post /v1/sessions/{sessionId}/fork',
    ],
    [
      'cancel a turn',
      () => stranger.post(`/v1/sessions/${session}/cancel`, { turn: 1 }),
      () => stranger.post(`/v1/sessions/${NO_SESSION}/cancel`, { turn: 1 }),
      'session_not_found',
      'post /v1/sessions/{sessionId}/cancel',
    ],
    [
      'run an agent in the background',
      () => stranger.post(`/v1/agents/${agent}/run`, input, { prefer: 'respond-async' }),
      () => stranger.post(`/v1/agents/${NO_AGENT}/run`, input, { prefer: 'respond-async' }),
      'agent_not_found',
      'post /v1/agents/{agentId}/run',
    ],
    [
      'GET events',
      () => stranger.get(`/v1/sessions/${session}/events`),
      () => stranger.get(`/v1/sessions/${NO_SESSION}/events`),
      'session_not_found',
      'get /v1/sessions/{sessionId}/events',
    ],
    [
      'export a session',
      () => stranger.get(`/v1/sessions/${session}/export?format=events`),
      () => stranger.get(`/v1/sessions/${NO_SESSION}/export?format=events`),
      'session_not_found',
      'get /v1/sessions/{sessionId}/export',
    ],
    [
      'export a session as a conversation',
      () => stranger.get(`/v1/sessions/${session}/export?format=openai-chat`),
      () => stranger.get(`/v1/sessions/${NO_SESSION}/export?format=openai-chat`),
      'session_not_found',
      'get /v1/sessions/{sessionId}/export',
    ],
    [
      'report a session',
      () => stranger.get(`/v1/sessions/${session}/report`),
      () => stranger.get(`/v1/sessions/${NO_SESSION}/report`),
      'session_not_found',
      'get /v1/sessions/{sessionId}/report',
    ],
    [
      'GET the stream of a turn',
      () => stranger.get(`/v1/sessions/${session}/turns/1/stream`),
      () => stranger.get(`/v1/sessions/${NO_SESSION}/turns/1/stream`),
      'session_not_found',
      'get /v1/sessions/{sessionId}/turns/{turn}/stream',
    ],
    [
      'erase a session',
      () => stranger.send('DELETE', `/v1/sessions/${session}`, ''),
      () => stranger.send('DELETE', `/v1/sessions/${NO_SESSION}`, ''),
      'session_not_found',
      'delete /v1/sessions/{sessionId}',
    ],
    [
      'erase an agent',
      () => stranger.send('POST', `/v1/agents/${agent}/erase`, ''),
      () => stranger.send('POST', `/v1/agents/${NO_AGENT}/erase`, ''),
      'agent_not_found',
      'post /v1/agents/{agentId}/erase',
    ],
    [
      'GET the proof of a session',
      () => stranger.get(`/v1/sessions/${session}/proof`),
      () => stranger.get(`/v1/sessions/${NO_SESSION}/proof`),
      'session_not_found',
      'get /v1/sessions/{sessionId}/proof',
    ],
    [
      'GET a webhook',
      () => stranger.get(`/v1/webhooks/${webhook}`),
      () => stranger.get(`/v1/webhooks/${NO_WEBHOOK}`),
      'webhook_not_found',
      'get /v1/webhooks/{webhookId}',
    ],
    [
      'change a webhook',
      () => stranger.send('PATCH', `/v1/webhooks/${webhook}`, { enabled: false }),
      () => stranger.send('PATCH', `/v1/webhooks/${NO_WEBHOOK}`, { enabled: false }),
      'webhook_not_found',
      'patch /v1/webhooks/{webhookId}',
    ],
    [
      'delete a webhook',
      () => stranger.send('DELETE', `/v1/webhooks/${webhook}`, ''),
      () => stranger.send('DELETE', `/v1/webhooks/${NO_WEBHOOK}`, ''),
      'webhook_not_found',
      'delete /v1/webhooks/{webhookId}',
    ],
    [
      'test a webhook',
      () => stranger.post(`/v1/webhooks/${webhook}/test`, {}),
      () => stranger.post(`/v1/webhooks/${NO_WEBHOOK}/test`, {}),
      'webhook_not_found',
      'post /v1/webhooks/{webhookId}/test',
    ],
    [
      'GET the attempts of a webhook',
      () => stranger.get(`/v1/webhooks/${webhook}/attempts`),
      () => stranger.get(`/v1/webhooks/${NO_WEBHOOK}/attempts`),
      'webhook_not_found',
      'get /v1/webhooks/{webhookId}/attempts',
    ],
    [
      'GET a replay',
      () => stranger.get(`/v1/replays/${replay}`),
      () => stranger.get(`/v1/replays/${NO_REPLAY}`),
      'replay_not_found',
      'get /v1/replays/{replayId}',
    ],
    [
      'GET the sessions of a replay',
      () => stranger.get(`/v1/replays/${replay}/sessions`),
      () => stranger.get(`/v1/replays/${NO_REPLAY}/sessions`),
      'replay_not_found',
      'get /v1/replays/{replayId}/sessions',
    ],
    [
      'GET the stream of a replay',
      () => stranger.get(`/v1/replays/${replay}/stream`),
      () => stranger.get(`/v1/replays/${NO_REPLAY}/stream`),
      'replay_not_found',
      'get /v1/replays/{replayId}/stream',
    ],
    [
      'cancel a replay',
      () => stranger.post(`/v1/replays/${replay}/cancel`, {}),
      () => stranger.post(`/v1/replays/${NO_REPLAY}/cancel`, {}),
      'replay_not_found',
      'post /v1/replays/{replayId}/cancel',
    ],
    [
      'GET an API key',
      () => stranger.get(`/v1/keys/${key}`),
      () => stranger.get(`/v1/keys/${NO_KEY}`),
      'key_not_found',
      'get /v1/keys/{keyId}',
    ],
    [
      'rotate an API key',
      () => stranger.post(`/v1/keys/${key}/rotate`, {}),
      () => stranger.post(`/v1/keys/${NO_KEY}/rotate`, {}),
      'key_not_found',
      'post /v1/keys/{keyId}/rotate',
    ],
    [
      'revoke an API key',
      () => stranger.send('DELETE', `/v1/keys/${key}`, ''),
      () => stranger.send('DELETE', `/v1/keys/${NO_KEY}`, ''),
      'key_not_found',
      'delete /v1/keys/{keyId}',
    ],
  ];

  test('is asked for by every operation that names one', () => {
    const naming = routes.filter(({ path }) =>
      /\{(agent|key|replay|session|webhook)Id\}/.test(path),
    );
    expect([...new Set(ATTEMPTS.map(([, , , , operation]) => operation))].toSorted()).toEqual(
      naming.map(({ method, path }) => `${method} ${path}`).toSorted(),
    );
  });

  test.each(ATTEMPTS)(
    'is a 404 like one that never existed to whoever tries to %s, and nothing is appended',
    async (_what, theirs, nobodys, code) => {
      const head = await log.head();
      const asked = service.model.requests.length;
      for (more of [{}, { 'idempotency-key': 'one-for-all' }]) {
        const [one, other] = [await theirs(), await nobodys()];
        expect([one.status, one.body.code]).toEqual([404, code]);
        expect(comparable(one)).toBe(comparable(other));
      }
      more = {};
      expect(await log.head()).toBe(head);
      expect(service.model.requests.length).toBe(asked);
    },
  );

  test('is not answered to whoever sends the same request with the same key', async () => {
    more = { 'idempotency-key': 'chosen by two' };
    const body = { name: 'Same', instruction: 'Obey.', model: 'scripted' };
    const ours = await service.post('/v1/agents', body, more);
    const theirs = await stranger.post('/v1/agents', body);
    more = {};
    expect(theirs.headers.get('idempotency-replayed')).toBeNull();
    expect(theirs.body.data.agent_id).not.toBe(ours.body.data.agent_id);
  });

  test('is in no list of ours, whatever the cursor or the filter', async () => {
    expect((await stranger.get('/v1/agents')).body.data).toEqual([
      expect.objectContaining({ agent_id: strangersAgent }),
      expect.objectContaining({ name: 'Same' }),
    ]);
    expect((await stranger.get('/v1/sessions')).body.data).toEqual([]);
    expect((await stranger.get('/v1/webhooks')).body.data).toEqual([]);
    const keys = (await stranger.get('/v1/keys')).body.data as { key_id: string }[];
    expect(keys.map(({ key_id }) => key_id)).toEqual([/^tl_(key_\w{26})_/.exec(strangersKey)![1]]);
    for (const format of EXPORT_FORMATS) {
      const theirs = { url: service.url, key: strangersKey };
      const { status, text } = await exported(theirs, `/v1/export?format=${format}`);
      expect([status, text]).toEqual([200, '']);
      expect((await exported(service, `/v1/export?format=${format}`)).text).not.toBe('');
    }
    expect((await stranger.get('/v1/replays')).body.data).toEqual([]);
    expect((await stranger.get(`/v1/sessions?replay_id=${replay}`)).body.data).toEqual([]);
    expect((await service.get(`/v1/sessions?replay_id=${replay}`)).body.data).toHaveLength(1);
    expect((await stranger.get(`/v1/sessions?agent_id=${agent}`)).body.data).toEqual([]);
    expect((await stranger.get('/v1/sessions?label=case:12')).body.data).toEqual([]);
    expect((await service.get('/v1/sessions?label=case:12')).body.data).toHaveLength(1);
    expect((await stranger.get(`/v1/agents?after=${agent}&limit=1000`)).body.data).toEqual([
      expect.objectContaining({ agent_id: strangersAgent }),
      expect.objectContaining({ name: 'Same' }),
    ]);
  });

  test('goes on undisturbed for its owner', async () => {
    const { status } = await service.post(`/v1/agents/${agent}/run`, {
      input: 'again',
      session_id: session,
    });
    expect(status).toBe(200);
    expect(
      (await service.get(`/v1/sessions/${session}`)).body.data.turns.map(
        ({ input: text }: { input: string }) => text,
      ),
    ).toEqual(['secret', 'again']);
  });
});

test('the transparency log, which has an entry of everybody’s events, names nobody', async () => {
  const headers = { 'x-api-key': service.key };
  const read = (path: string) => fetch(`${service.url}/v1/log/${path}`, { headers });
  const note = await eventually(
    async () => (await read('checkpoint')).text(),
    (text) => text.includes('\n\n'),
  );
  const size = Math.min(256, Number(note.split('\n')[1]));
  const answer = await read(`tile/entries/000${size < 256 ? `.p/${size}` : ''}`);
  const entries = entriesOf(Buffer.from(await answer.arrayBuffer()), size).map(String);
  for (const [index, entry] of entries.entries())
    expect(entry).toMatch(new RegExp(`^\\{"hash":"[0-9a-f]{64}","index":${index}\\}$`));
});

describe('an id of the wrong shape', () => {
  const WRONG = [
    'x',
    'agent_',
    NO_AGENT.toUpperCase(),
    `${NO_AGENT}0`,
    '..%2F..',
    '%2e%2e',
    '%00',
    'agent_%F0%9F%98%80',
    '%zz',
    "'%20OR%201=1--",
    '__proto__',
    'constructor',
    'a'.repeat(8_000),
  ];
  test.each(WRONG.map((id) => [id.slice(0, 40), id]))('is not found: %s', async (_shown, id) => {
    const head = await log.head();
    const answers = [
      await service.get(`/v1/agents/${id}`),
      await service.post(`/v1/agents/${id}/run`, input),
      await service.send('PUT', `/v1/agents/${id}`, configuration),
      await service.send('PATCH', `/v1/agents/${id}`, { name: 'x' }),
      await service.send('DELETE', `/v1/agents/${id}`, ''),
      await service.get(`/v1/agents/${id}/revisions`),
      await service.get(`/v1/sessions/${id}`),
      await service.send('PATCH', `/v1/sessions/${id}`, { title: 'x' }),
      await service.get(`/v1/sessions/${id}/turns/1/stream`),
      await service.get(`/v1/sessions/${session}/turns/${id}/stream`),
      // Whoever writes `..` asks for /v1/events, which has no end, and for /v1/export.
      ...(id === '%2e%2e'
        ? []
        : [
            await service.get(`/v1/sessions/${id}/events`),
            await service.get(`/v1/sessions/${id}/export?format=openai-chat`),
          ]),
      await service.send('DELETE', `/v1/sessions/${id}`, ''),
      await service.post(`/v1/agents/${id}/erase`, ''),
      await service.get(`/v1/sessions/${id}/proof`),
      await service.get(`/v1/sessions/${id}/turns/1`),
      await service.get(`/v1/sessions/${session}/turns/${id}`),
      await service.get(`/v1/sessions/${id}/turns/1/requests`),
      await service.get(`/v1/sessions/${session}/turns/${id}/requests`),
      await service.get(`/v1/sessions/${id}?at_turn=1`),
      await service.post(`/v1/sessions/${id}/cancel`, {}),
      await service.get(`/v1/replays/${id}`),
      // The same for /v1/sessions, which is there.
      ...(id === '%2e%2e' ? [] : [await service.get(`/v1/replays/${id}/sessions`)]),
      await service.get(`/v1/replays/${id}/stream`),
      await service.post(`/v1/replays/${id}/cancel`, {}),
      await service.get(`/v1/webhooks/${id}`),
      await service.send('PATCH', `/v1/webhooks/${id}`, {}),
      await service.send('DELETE', `/v1/webhooks/${id}`, ''),
      await service.get(`/v1/log/tile/0/${id}`),
      await service.get(`/v1/log/tile/${id}/000`),
      await service.get(`/v1/log/tile/entries/${id}`),
    ];
    for (const { status, body } of answers) expect([status, body.success]).toEqual([404, false]);
    expect(await log.head()).toBe(head);
  });

  test.each(['x', NO_SESSION.toUpperCase(), `${NO_SESSION}0`, '../../..', '__proto__'])(
    'in session_id is a session that does not exist: %s',
    async (session_id) => {
      const head = await log.head();
      const answer = await service.post(`/v1/agents/${agent}/run`, { ...input, session_id });
      expect([answer.status, answer.body.code]).toEqual([404, 'session_not_found']);
      expect(await log.head()).toBe(head);
    },
  );
});
