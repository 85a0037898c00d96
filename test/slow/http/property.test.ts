import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { apiFeatures } from '../../../services/api/features.ts';
import { verifyChains } from '../../../shared/eventlog/reading/verifyChains.ts';
import { exchange, rawRequest } from '../../support/http/rawHttp.ts';
import { startScriptedModel, type ScriptedModel } from '../../support/fakes/scriptedModel.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import { apiClient, TEST_KEY, writeModelsFile, type Client } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../../support/jest/size.ts';

const REQUESTS = size({ small: 600, full: 2_500 });

let folder: string;
let model: ScriptedModel;
let server: ServerProcess;
let url: string;
let client: Client;
let agent: string;
let doomed: string;
let session: string;

beforeAll(async () => {
  folder = await temporaryFolder();
  model = await startScriptedModel((_request, index) => ({ text: `answer ${index}` }));
  // A process of its own: there an unhandled rejection is the end of it, and every failure of the
  // service itself is in its log.
  server = startServerProcess({
    DATA_DIR: folder,
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'error',
  });
  url = await server.ready;
  client = apiClient(url, TEST_KEY);
  agent = (
    await client.post('/v1/agents', {
      name: 'Test',
      instruction: 'Be brief.',
      model: 'scripted',
      tool: 'calculator',
    })
  ).body.data.agent_id as string;
  doomed = (
    await client.post('/v1/agents', { name: 'Test', instruction: 'Go.', model: 'scripted' })
  ).body.data.agent_id as string;
  session = (await client.post(`/v1/agents/${agent}/run`, { input: 'hi' })).body.data
    .session_id as string;
});
afterAll(async () => {
  server.kill('SIGKILL');
  await server.exited;
  await model.close();
  await rm(folder, { recursive: true });
});

/** Mostly what is right, so that what is wrong beside it gets far. */
const mostly = <Value>(
  right: fc.Arbitrary<Value>,
  wrong: fc.Arbitrary<Value>,
): fc.Arbitrary<Value> =>
  fc.oneof({ arbitrary: right, weight: 4 }, { arbitrary: wrong, weight: 1 });

const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    '',
    '\0',
    '\ud800',
    '__proto__',
    'constructor',
    '../../..',
    '%00',
    "' OR 1=1--",
    '\r\nx: y',
    '👩‍👩‍👧‍👦',
    '9'.repeat(400),
    'x'.repeat(300_000),
  ),
);
const visible = fc.string({
  unit: fc.constantFrom(...Array.from('abz09_-.~%:;,=&?[]/\\\'"<>{}|^`!$*()@+')),
  maxLength: 30,
});

const ids = fc.constantFrom(
  'AGENT',
  'SESSION',
  'agent_01kahz0b2re5v8k2s4n6t8w0y2',
  'session_01kahz1c3sf6w9m3v5q7x9z1a3',
  'x',
  '..',
  '%2e%2e',
  '%00',
  '%zz',
);
const resource = fc.oneof(
  fc.constantFrom(
    '/v1/agents',
    '/v1/sessions',
    '/v1/models',
    '/v1/tools',
    '/health/live',
    '/health/ready',
    '/openapi.json',
    '/v1/agents/AGENT/run',
    '/v1/agents/AGENT',
    '/v1/sessions/SESSION',
    '/v1/sessions/SESSION/events',
  ),
  fc
    .tuple(
      fc.constantFrom('agents', 'sessions', 'models'),
      ids,
      fc.constantFrom('', '/run', '/events', '/', '//'),
    )
    .map(([kind, id, rest]) => `/v1/${kind}/${id}${rest}`),
);
const path = mostly(
  resource,
  visible.map((text) => `/${text}`),
);
const parameter = fc.tuple(
  fc.oneof(fc.constantFrom('pretty', 'limit', 'after', 'agent_id', '__proto__'), visible),
  fc.oneof(fc.constantFrom('true', 'false', '1', '1000', '0', '-1', '1e9', 'AGENT', ''), visible),
);
const query = mostly(
  fc.constant(''),
  fc
    .array(parameter, { minLength: 1, maxLength: 3 })
    .map((parameters) => `?${parameters.map(([name, value]) => `${name}=${value}`).join('&')}`),
);

const fields = fc.record(
  {
    name: mostly(fc.constant<unknown>('Sums'), fc.oneof(oddText, fc.anything())),
    instruction: mostly(fc.constant<unknown>('Add up.'), fc.oneof(oddText, fc.anything())),
    model: mostly(fc.constant<unknown>('scripted'), fc.oneof(oddText, fc.anything())),
    input: mostly(fc.constant<unknown>('What is 1+1?'), fc.oneof(oddText, fc.anything())),
    session_id: mostly(fc.constant<unknown>('SESSION'), fc.oneof(oddText, fc.anything())),
    tool: fc.oneof(fc.constantFrom<unknown>('calculator', 'clock', null), oddText),
    component: fc.oneof(fc.constantFrom<unknown>('Chat', 'chat'), oddText),
  },
  { requiredKeys: [] },
);
const asJson = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'bigint' ? Number(member) : member,
  ) ?? '';
const agentBody = fields.map((given) =>
  asJson({
    name: 'Sums',
    instruction: 'Add up.',
    model: 'scripted',
    ...given,
    input: undefined,
    session_id: undefined,
  }),
);
const runBody = fields.map(({ input, session_id }) =>
  asJson({
    input: 'hi',
    ...(input !== undefined && { input }),
    ...(session_id !== undefined && { session_id }),
  }),
);
const body = fc.oneof(
  agentBody,
  runBody,
  fields.map(asJson),
  fc.json(),
  oddText.map((text) => text.slice(0, 5_000)),
  fc.anything().map(asJson),
);

const headers = fc.record({
  key: mostly(fc.constant(TEST_KEY), visible),
  type: mostly(
    fc.constant('application/json'),
    fc.constantFrom(
      'text/plain',
      'application/json; charset=utf-16',
      '',
      'application/json;charset=UTF-8',
    ),
  ),
  more: mostly(
    fc.constant<[string, string][]>([]),
    fc.array(
      fc.tuple(
        fc.constantFrom(
          'x-request-id',
          'x-api-key',
          'content-type',
          'content-encoding',
          'expect',
          'transfer-encoding',
          'accept',
          'cookie',
          'host',
          'connection',
        ),
        visible,
      ),
      { maxLength: 2 },
    ),
  ),
});
const method = mostly(
  fc.constantFrom('GET', 'POST'),
  fc.constantFrom('PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'FOO'),
);

/** Creations and runs whose body is meant for them get further than what is drawn apart. */
const request = fc
  .oneof(
    {
      arbitrary: fc.record({
        method: fc.constant('POST'),
        path: fc.constant('/v1/agents'),
        query,
        headers,
        body: agentBody,
      }),
      weight: 2,
    },
    {
      arbitrary: fc.record({
        method: fc.constant('POST'),
        path: fc.constant('/v1/agents/AGENT/run'),
        query,
        headers,
        body: runBody,
      }),
      weight: 2,
    },
    { arbitrary: fc.record({ method, path, query, headers, body }), weight: 3 },
  )
  .map((drawn) => {
    const { key, type, more } = drawn.headers;
    const all: [string, string][] = [['x-api-key', key], ['content-type', type], ...more];
    return {
      verb: drawn.method,
      line: `${drawn.method} ${drawn.path}${drawn.query}`,
      all,
      text: drawn.method === 'GET' || drawn.method === 'HEAD' ? '' : drawn.body,
    };
  });
type Drawn = typeof request extends fc.Arbitrary<infer Value> ? Value : never;

/** The agents and the session exist only when the requests are sent. What is deleted is another one. */
const named = (text: string, verb: string): string =>
  text.replaceAll('AGENT', verb === 'DELETE' ? doomed : agent).replaceAll('SESSION', session);

async function answerTo({
  verb,
  line,
  all,
  text,
}: Drawn): Promise<{ status: number; code: string }> {
  const [reply] = await exchange(url, rawRequest(named(line, verb), all, named(text, verb)), {
    bodiless: verb === 'HEAD',
  });
  if (!reply) throw new Error('the connection was closed without an answer');
  expect(reply.status).toBeLessThan(500);
  if (verb === 'HEAD' || (verb === 'OPTIONS' && reply.status === 200))
    return { status: reply.status, code: '' };
  expect(reply.headers.get('x-request-id')).not.toBeNull();
  if (reply.status === 200) {
    expect(reply.body).toMatchObject(
      line.includes('/openapi.json')
        ? { openapi: '3.1.0' }
        : { success: true, data: expect.anything(), status: 200 },
    );
    return { status: 200, code: '' };
  }
  const { code = '', status } = reply.body;
  expect(reply.body).toMatchObject({
    success: false,
    error: expect.any(String),
    status: reply.status,
    request_id: reply.headers.get('x-request-id'),
  });
  expect(Object.keys(apiFeatures.errorResponses)).toContain(code);
  if (status !== 431)
    expect(apiFeatures.errorResponses[code as keyof typeof apiFeatures.errorResponses].status).toBe(
      status,
    );
  return { status, code };
}

test(`${REQUESTS} generated requests are each answered with the envelope and a code of ours, never a 5xx, and leave the service and its log sound`, async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 10, maxLength: 10 }), async (requests) => {
      for (const { status, code } of await Promise.all(requests.map(answerTo)))
        seen.set(`${status} ${code}`, (seen.get(`${status} ${code}`) ?? 0) + 1);
    }),
    { numRuns: REQUESTS / 10, seed: 20_261_120, endOnFailure: true },
  );

  // The generator reaches what it is meant to reach: successes, and every kind of refusal.
  const expected = [
    '200 ',
    '400 invalid_json',
    '400 invalid_request',
    '401 unauthorized',
    '404 agent_not_found',
    '404 not_found',
    '404 session_not_found',
    '405 method_not_allowed',
    '415 unsupported_media_type',
    '400 model_not_supported',
    '400 tool_not_supported',
  ];
  expect(expected.filter((outcome) => (seen.get(outcome) ?? 0) < 3)).toEqual([]);
  expect([...seen.values()].reduce((sum, count) => sum + count)).toBe(REQUESTS);

  expect((await client.get('/health/ready')).body.data).toEqual({
    status: 'ready',
    projection: { caught_up: true, parked_streams: [] },
    replays: { state: 'active', running: 0 },
    runs_in_flight: 0,
    runs_waiting: 0,
    transparency_log: expect.objectContaining({ state: 'active' }),
    webhooks: { state: 'active', enabled: 0, failing: 0 },
  });
  server.kill('SIGTERM');
  expect(await server.exited).toBe(0);
  expect(server.errors()).toBe('');
  const store = await openSqliteEventStore({ folder });
  let verified = 0;
  const misfit = await verifyChains({
    store,
    after: undefined,
    signal: new AbortController().signal,
    onProgress: ({ events }) => (verified = events),
  });
  await store.close();
  expect(misfit).toBeUndefined();
  expect(verified).toBeGreaterThan(100);
}, 180_000);
