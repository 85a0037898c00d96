import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { apiFeatures, routes } from '../../../services/api/features.ts';
import { sessionEventSchemas } from '../../../shared/sessions/events.ts';
import { packageVersion } from '../../../services/process/help.ts';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import { clientWith, eventually, newKey } from '../../support/processes/operator.ts';
import { replaysOf } from '../../support/http/replaysOverHttp.ts';
import type { ScriptedFault } from '../../support/fakes/scriptedModel.ts';
import { allEvents, openEvents } from '../../support/http/sse.ts';
import {
  apiClient,
  startTestService,
  type Client,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

interface Response {
  description: string;
  headers: Record<string, { $ref: string }>;
  content: { 'application/json': { schema: object } };
}
interface Operation {
  operationId: string;
  security: object[];
  parameters: { name: string; in: string; required: boolean; schema: object }[];
  requestBody?: { content: { 'application/json': { schema: object } } };
  responses: Record<string, Response>;
}
interface Document {
  paths: Record<string, Record<string, Operation>>;
  info: { description: string; version: string };
  components: {
    headers: Record<string, { required?: boolean }>;
    schemas: Record<string, Schema>;
  };
}
/** As much of a schema as is looked at here. */
interface Schema {
  $ref?: string;
  oneOf?: Schema[];
  examples?: string[];
  properties?: Record<string, Schema & { const?: unknown; enum?: string[] }>;
}

let service: TestService;
let document: Document;
let ajv: Ajv2020;
let agent: string;
let session: string;
let webhook: string;
let replay: string;

const today = new Date().toISOString().slice(0, 10);
const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
const USAGE = `/v1/usage?from=${yesterday}&to=${today}&by=day,agent,model,key,kind,code&limit=1`;

beforeAll(async () => {
  service = await startTestService(
    { text: 'Hello.' },
    { MODEL_MAX_RETRIES: '0', MODEL_ATTEMPT_TIMEOUT_MS: '2000', WEBHOOKS_ALLOW_PRIVATE: 'true' },
  );
  document = (await (await fetch(`${service.url}/openapi.json`)).json()) as Document;
  // The references in the document are to itself.
  ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    validateFormats: false,
    schemas: [{ $id: 'https://turnlog.test/openapi', ...document }],
  });
  agent = await service.createAgent({ tool: 'calculator' });
  service.model.use([
    {
      text: 'Let me see.',
      tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }],
    },
    { text: '2' },
  ]);
  session = (await service.post(`/v1/agents/${agent}/run`, { input: '1+1?' })).body.data
    .session_id as string;
  webhook = await newWebhook();
  replay = (await startReplay()).body.data.replay_id as string;
  // Its calls would take answers that are meant for the runs of a test.
  await replaysOf(service).ended(replay);
  for (const script of [{ status: 500 }, { text: 'again' }]) {
    service.model.use(script);
    await service.post(`/v1/agents/${agent}/run`, { input: 'go on', session_id: session });
  }
});
afterAll(() => service.close());

const startReplay = (): Promise<Reply> =>
  service.post('/v1/replays', {
    sessions: [session],
    tools: 'recorded',
    budget: { tokens: 1_000 },
    checks: [{ contains: '2' }, { json_schema: { type: 'number' } }],
  });

async function newWebhook(): Promise<string> {
  const created = await service.post('/v1/webhooks', { url: 'http://127.0.0.1:9/x' });
  return created.body.data.webhook_id as string;
}

async function newKeyId(): Promise<string> {
  const issued = await service.post('/v1/keys', { name: 'x', scopes: ['agents:read'] });
  return issued.body.data.key_id as string;
}

const operations = (): [string, Operation][] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method} ${path}`,
      operation,
    ]),
  );
const nameIn = ($ref: string): string => $ref.split('/').at(-1)!;
/** The named schemas that one stands for. */
const named = ({ $ref, oneOf = [] }: Schema): string[] =>
  $ref === undefined ? oneOf.flatMap(named) : [nameIn($ref)];
const operation = (name: string): Operation => new Map(operations()).get(name)!;

/** Compiles a schema of the document, found again by where it is, so that its references work. */
function validatorFor(name: string, status: number): ValidateFunction {
  const [method, path] = name.split(' ') as [string, string];
  const pointer = [
    'paths',
    path,
    method,
    'responses',
    String(status),
    'content',
    'application/json',
    'schema',
  ]
    .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
    .join('/');
  return ajv.compile({ $ref: `https://turnlog.test/openapi#/${pointer}` });
}

/** Expects the answer to be as the document describes it for that operation and status. */
function expectDescribed(name: string, { status, headers, body }: Reply): void {
  const described = operation(name).responses[status];
  expect({ name, status, described: described !== undefined }).toEqual({
    name,
    status,
    described: true,
  });
  const validate = validatorFor(name, status);
  validate(body);
  expect(validate.errors ?? []).toEqual([]);
  expect(headers.get('x-request-id')).not.toBeNull();
  for (const [header, { $ref }] of Object.entries(described!.headers))
    if (document.components.headers[nameIn($ref)]!.required)
      expect([header, headers.has(header)]).toEqual([header, true]);
  const names = Object.keys(described!.headers).map((header) => header.toLowerCase());
  for (const header of ['etag', 'link', 'location', 'retry-after', 'www-authenticate'])
    if (headers.has(header)) expect(names).toContain(header);
}

describe('the document', () => {
  test('is valid OpenAPI 3.1 to an independent validator', async () => {
    const validator = new Validator();
    expect(await validator.validate({ ...structuredClone(document) })).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  test('describes every route that is served, and itself not', () => {
    const served = routes
      .map(({ method, path }) => `${method} ${path}`)
      .filter((name) => name !== 'get /openapi.json');
    expect(
      operations()
        .map(([name]) => name)
        .toSorted(),
    ).toEqual(served.toSorted());
    expect(new Set(operations().map(([, { operationId }]) => operationId)).size).toBe(
      served.length,
    );
  });

  test('says which parameters of a query have to be there', () => {
    const required = operations().map(([name, { parameters }]) => [
      name,
      parameters
        .filter((one: any) => one.in === 'query' && one.required)
        .map((one: any) => one.name as string),
    ]);
    expect(Object.fromEntries(required.filter(([, names]) => names!.length > 0))).toEqual({
      'get /v1/export': ['format'],
      'get /v1/sessions/{sessionId}/export': ['format'],
      'get /v1/usage': ['from', 'to'],
    });
  });

  test('says which operations need a key', () => {
    for (const [name, { security }] of operations())
      expect([name, security]).toEqual([
        name,
        name.includes('/health/') ? [] : [{ apiKey: [] }, { bearer: [] }],
      ]);
  });

  test('gives every failure the status of its code, the meaning of each code, and Retry-After where it is due', () => {
    for (const [name, { responses }] of operations()) {
      for (const [status, { description, headers, content }] of Object.entries(responses).filter(
        ([key]) => Number(key) >= 400,
      )) {
        for (const title of named(content['application/json'].schema)) {
          const { code, status: stated } = document.components.schemas[title]!.properties!;
          const value = code!.const as ErrorCode;
          expect([name, value, String(stated!.const)]).toEqual([name, value, status]);
          expect(String(apiFeatures.errorResponses[value].status)).toBe(status);
          expect(description).toContain(
            `\`${value}\`: ${apiFeatures.errorResponses[value].description}.`,
          );
        }
        expect('Retry-After' in headers).toBe(['429', '503'].includes(status));
        expect('WWW-Authenticate' in headers).toBe(status === '401');
      }
    }
  });

  test('says which responses may precede the read models: those of changes, and of the read that waits', () => {
    for (const [name, { responses }] of operations()) {
      const expected = !name.startsWith('get ') || name.endsWith('/turns/{turn}');
      const response = responses['200'] ?? responses['201'] ?? responses['202'];
      if (response)
        expect([name, 'X-Turnlog-Visible' in response.headers]).toEqual([name, expected]);
    }
  });

  test('describes every code that may leave the service, those without an operation included', () => {
    const text = JSON.stringify(document);
    for (const [code, { status }] of Object.entries(apiFeatures.errorResponses)) {
      const leaves = status !== 500 || code === 'internal_error';
      expect([code, text.includes(`\`${code}\``)]).toEqual([code, leaves]);
    }
    for (const code of ['not_found', 'method_not_allowed'] as const)
      expect(document.info.description).toContain(
        `${apiFeatures.errorResponses[code].status} \`${code}\``,
      );
  });

  test('names every schema of a resource, an event and a failure, and says of every value which type it has', () => {
    const { schemas } = document.components;
    expect(Object.keys(schemas)).toEqual(
      expect.arrayContaining(
        'Agent AgentDetail CreateAgentRequest CreatedAgent Session Transcript Turn ToolCall RunRequest RunResult Model Tool SessionEvent SessionTurnStartedV1 EventMetadata Liveness Readiness Unauthorized AgentNotFound Overloaded'.split(
          ' ',
        ),
      ),
    );
    const untyped: string[] = [];
    const walk = (value: unknown, path: string): void => {
      if (typeof value !== 'object' || value === null) return;
      const schema = value as Record<string, unknown>;
      if (['const', 'enum', 'oneOf'].some((word) => word in schema) && !('type' in schema))
        untyped.push(path);
      for (const [key, part] of Object.entries(schema))
        if (key !== 'examples') walk(part, `${path}/${key}`);
    };
    walk(document, '');
    expect(untyped).toEqual([]);
  });

  test('has examples of models and tools that the service offers, and allows any, as another may', () => {
    const { model, tool, component, max_output_tokens } =
      document.components.schemas['CreateAgentRequest']!.properties!;
    expect([model, tool, component].map((schema) => schema!.examples)).toEqual([
      ['scripted'],
      ['calculator'],
      ['Chat'],
    ]);
    const validate = ajv.compile({
      $ref: 'https://turnlog.test/openapi#/components/schemas/CreateAgentRequest',
    });
    const other = { model: 'another', tool: 'telephone', component: 'Carousel' };
    validate({ name: 'x', instruction: 'x', max_output_tokens: 999_999, ...other });
    expect(validate.errors).toBeNull();
    expect(max_output_tokens).toBeDefined();
  });

  test('has the version of the package', () => {
    expect(document.info.version).toBe(packageVersion());
  });

  test('names the envelope of each response after its operation', () => {
    const unnamed = operations().flatMap(([name, { operationId, responses }]) =>
      Object.entries(responses)
        .filter(([status, { content }]) => status.startsWith('2') && content?.['application/json'])
        .filter(([status, { content }]) => {
          const title = `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Response${status}`;
          const { $ref } = content['application/json'].schema as Schema;
          return $ref !== `#/components/schemas/${title}`;
        })
        .map(([status]) => `${name} ${status}`),
    );
    expect(unnamed).toEqual([]);
  });

  test('types the data of every event that a session may have', () => {
    const events = named(document.components.schemas['SessionEvent']!);
    const types = events.map(
      (title) => document.components.schemas[title]!.properties!['type']!.const as string,
    );
    expect(types.toSorted()).toEqual(
      sessionEventSchemas.map(({ properties }) => properties.type.const as string).toSorted(),
    );
    for (const title of events)
      expect(document.components.schemas[title]!.properties!['data']).toEqual({
        $ref: `#/components/schemas/${title}Data`,
      });
  });

  test('describes every path parameter and the query of each operation', () => {
    for (const [name, { parameters }] of operations()) {
      expect(
        parameters
          .filter((parameter) => parameter.in === 'path')
          .map((parameter) => `{${parameter.name}}`),
      ).toEqual(name.match(/\{\w+\}/g) ?? []);
      expect(
        parameters
          .filter((parameter) => parameter.in === 'query')
          .map((parameter) => parameter.name),
      ).toContain('pretty');
      for (const parameter of parameters)
        if (parameter.in !== 'query') expect(parameter.required).toBe(parameter.in === 'path');
    }
  });
});

describe('real answers are as described', () => {
  test('by the events of a run that is streamed, and of one that fails', async () => {
    const validate = ajv.compile({
      $ref: 'https://turnlog.test/openapi#/components/schemas/TurnStreamEvent',
    });
    const stream = async () =>
      allEvents(
        await openEvents(`${service.url}/v1/agents/${agent}/run`, {
          method: 'POST',
          headers: { 'x-api-key': service.key, 'content-type': 'application/json' },
          body: '{"input":"1+1?"}',
        }),
      );
    service.model.use([
      { tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }] },
      { reasoning: 'One more.', text: '2' },
    ]);
    const events = await stream();
    service.model.use({ status: 400 });
    events.push(...(await stream()));
    service.model.use({ text: 'Hello.' });
    for (const event of events) {
      validate(structuredClone(event));
      expect([event.event, validate.errors]).toEqual([event.event, null]);
    }
    const { mapping } = (document.components.schemas['TurnStreamEvent'] as any).discriminator;
    const seen = new Set(events.map(({ event }) => event));
    expect(new Set(Object.keys(mapping as object))).toEqual(seen);
    expect(validate({ event: 'output.delta', data: { text: 'x' } })).toBe(false);
  });

  const EACH: readonly (readonly [string, () => Promise<Reply>])[] = [
    ['get /v1/agents', () => service.get('/v1/agents?limit=1&pretty=true')],
    [
      'post /v1/keys',
      () => service.post('/v1/keys', { name: 'x', scopes: ['keys:write'], expires_in_seconds: 9 }),
    ],
    ['get /v1/keys', () => service.get('/v1/keys?state=active&limit=1')],
    ['get /v1/keys/{keyId}', async () => service.get(`/v1/keys/${await newKeyId()}`)],
    [
      'post /v1/keys/{keyId}/rotate',
      async () => service.post(`/v1/keys/${await newKeyId()}/rotate`, { overlap_seconds: 9 }),
    ],
    [
      'delete /v1/keys/{keyId}',
      async () => service.send('DELETE', `/v1/keys/${await newKeyId()}`, ''),
    ],
    ['post /v1/accounts', () => service.post('/v1/accounts', { name: 'x' })],
    ['get /v1/accounts', () => service.get('/v1/accounts?limit=1')],
    ['get /v1/agents/{agentId}', () => service.get(`/v1/agents/${agent}`)],
    ['get /v1/agents/{agentId}/revisions', () => service.get(`/v1/agents/${agent}/revisions`)],
    [
      'put /v1/agents/{agentId}',
      async () =>
        service.send('PUT', `/v1/agents/${await service.createAgent()}`, {
          name: 'x',
          instruction: 'x',
          model: 'scripted',
        }),
    ],
    [
      'patch /v1/agents/{agentId}',
      async () => service.send('PATCH', `/v1/agents/${await service.createAgent()}`, { name: 'x' }),
    ],
    [
      'delete /v1/agents/{agentId}',
      async () => service.send('DELETE', `/v1/agents/${await service.createAgent()}`, ''),
    ],
    [
      'patch /v1/sessions/{sessionId}',
      () =>
        service.send('PATCH', `/v1/sessions/${session}`, {
          title: 'x',
          labels: { a: 'b', c: null },
        }),
    ],
    ['get /v1/sessions', () => service.get('/v1/sessions?label=a:b&order=oldest')],
    ['get /v1/sessions/{sessionId}', () => service.get(`/v1/sessions/${session}`)],
    ['get /v1/sessions/{sessionId}/events', () => service.get(`/v1/sessions/${session}/events`)],
    ['get /v1/sessions/{sessionId}/proof', () => service.get(`/v1/sessions/${session}/proof`)],
    [
      'get /v1/sessions/{sessionId}/turns/{turn}',
      () => service.get(`/v1/sessions/${session}/turns/1`, { prefer: 'wait=1' }),
    ],
    [
      'get /v1/sessions/{sessionId}',
      () => service.get(`/v1/sessions/${session}?at_turn=1&limit=1`),
    ],
    [
      'get /v1/sessions/{sessionId}/turns/{turn}/requests',
      () => service.get(`/v1/sessions/${session}/turns/1/requests`),
    ],
    [
      'post /v1/sessions/{sessionId}/cancel',
      () => service.send('POST', `/v1/sessions/${session}/cancel`, ''),
    ],
    ['get /v1/usage', () => service.get(USAGE)],
    ['get /v1/usage/storage', () => service.get('/v1/usage/storage')],
    [
      'post /v1/sessions/{sessionId}/fork',
      () => service.post(`/v1/sessions/${session}/fork`, { at_turn: 1 }),
    ],
    ['get /v1/models', () => service.get('/v1/models')],
    ['get /v1/tools', () => service.get('/v1/tools')],
    ['get /health/live', () => service.get('/health/live')],
    ['get /health/ready', () => service.get('/health/ready')],
    [
      'post /v1/agents',
      () => service.post('/v1/agents', { name: 'x', instruction: 'x', model: 'scripted' }),
    ],
    [
      'post /v1/agents/{agentId}/run',
      () => service.post(`/v1/agents/${agent}/run`, { input: 'hi' }),
    ],
    [
      'post /v1/agents/{agentId}/chat-tokens',
      () => service.post(`/v1/agents/${agent}/chat-tokens`, { user: 'ada', session_id: session }),
    ],
    ['post /v1/replays', startReplay],
    ['get /v1/replays', () => service.get('/v1/replays')],
    ['get /v1/replays/{replayId}', () => service.get(`/v1/replays/${replay}`)],
    ['get /v1/replays/{replayId}/sessions', () => service.get(`/v1/replays/${replay}/sessions`)],
    [
      'post /v1/replays/{replayId}/cancel',
      () => service.send('POST', `/v1/replays/${replay}/cancel`, ''),
    ],
    ['get /v1/webhooks', () => service.get('/v1/webhooks')],
    [
      'get /v1/webhooks/{webhookId}/attempts',
      () => service.get(`/v1/webhooks/${webhook}/attempts`),
    ],
    ['post /v1/webhooks/{webhookId}/test', () => service.post(`/v1/webhooks/${webhook}/test`, '')],
    ['get /v1/webhooks/{webhookId}', () => service.get(`/v1/webhooks/${webhook}`)],
    ['post /v1/webhooks', () => service.post('/v1/webhooks', { url: 'http://127.0.0.1:9/y' })],
    [
      'patch /v1/webhooks/{webhookId}',
      () => service.send('PATCH', `/v1/webhooks/${webhook}`, { enabled: false }),
    ],
    [
      'delete /v1/webhooks/{webhookId}',
      async () => service.send('DELETE', `/v1/webhooks/${await newWebhook()}`, ''),
    ],
    [
      'delete /v1/sessions/{sessionId}',
      async () => {
        const another = await service.post(`/v1/agents/${agent}/run`, { input: 'hi' });
        return service.send('DELETE', `/v1/sessions/${another.body.data.session_id}`, '');
      },
    ],
    [
      'post /v1/agents/{agentId}/erase',
      async () => service.post(`/v1/agents/${await service.createAgent()}/erase`, ''),
    ],
    [
      'get /v1/erasures/{subjectId}',
      async () => {
        const erased = await service.createAgent();
        await service.post(`/v1/agents/${erased}/erase`, '');
        return eventually(
          () => service.get(`/v1/erasures/${erased}`),
          ({ status }) => status !== 503,
        );
      },
    ],
  ];

  test('by every operation that there is', () => {
    expect([...new Set(EACH.map(([name]) => name))].toSorted()).toEqual(
      operations()
        .map(([name]) => name)
        .filter(
          (name) =>
            !/^get .v1.log.|^get .v1.events$|^get .metrics$|.stream$|.export$|.report$/.test(name),
        )
        .toSorted(),
    );
  });

  test('by every stream of events, and by its end', async () => {
    const name = 'get /v1/sessions/{sessionId}/turns/{turn}/stream';
    const { responses, parameters } = operation(name);
    const path = `${service.url}/v1/sessions/${session}/turns/1/stream`;
    const ask = (more: Record<string, string>) =>
      fetch(path, { headers: { 'x-api-key': service.key, ...more } });
    const answer = await ask({});
    expect(await answer.text()).toContain('event: turn.completed\n');
    expect(Object.keys(responses['200']!.content)).toEqual([
      answer.headers.get('content-type')!.split(';')[0],
    ]);
    const header = parameters.find((one) => one.name === 'Last-Event-ID')!;
    expect(ajv.validate(header.schema, '1-end')).toBe(true);
    expect([(await ask({ 'last-event-id': '1-end' })).status, '204' in responses]).toEqual([
      204,
      true,
    ]);
    const run = operation('post /v1/agents/{agentId}/run').responses['200']!.content;
    expect(Object.keys(run)).toEqual(['application/json', 'text/event-stream']);
  });

  test('by the stream of a replay, and by its end', async () => {
    const { responses } = operation('get /v1/replays/{replayId}/stream');
    const path = `${service.url}/v1/replays/${replay}/stream`;
    const ask = (more: Record<string, string>) =>
      fetch(path, { headers: { 'x-api-key': service.key, ...more } });
    const text = await (await ask({})).text();
    expect(text).toContain('event: replay.ended\n');
    const last = text
      .match(/^id: .*$/gm)!
      .at(-1)!
      .slice(4);
    const { status } = await ask({ 'last-event-id': last });
    expect([status, '204' in responses]).toEqual([204, true]);
  });

  test('by every operation of the transparency log, as bytes', async () => {
    const bytes: Record<string, string> = {
      'get /v1/log/checkpoint': '/v1/log/checkpoint',
      'get /v1/log/tile/{level}/{index}': '/v1/log/tile/0/000.p/1',
      'get /v1/log/tile/entries/{index}': '/v1/log/tile/entries/000.p/1',
    };
    for (const [name, path] of Object.entries(bytes)) {
      const answer = await fetch(service.url + path, { headers: { 'x-api-key': service.key } });
      await answer.arrayBuffer();
      const type = answer.headers.get('content-type')!.split(';')[0]!;
      // A partial tile is only there where a checkpoint was signed at its size.
      const documented = Object.keys(operation(name).responses[answer.status]!.content);
      expect([name, documented]).toEqual([name, [type]]);
      expect([200, 404]).toContain(answer.status);
    }
  });

  test('by every export, as text', async () => {
    for (const [name, path] of [
      ['get /v1/export', '/v1/export'],
      ['get /v1/sessions/{sessionId}/export', `/v1/sessions/${session}/export`],
    ]) {
      const documented = Object.keys(operation(name!).responses['200']!.content);
      expect(documented).toEqual(['application/jsonl', 'text/plain']);
      for (const accept of documented) {
        const answer = await fetch(`${service.url}${path}?format=events`, {
          headers: { 'x-api-key': service.key, accept },
        });
        await answer.text();
        const type = answer.headers.get('content-type')!.split(';')[0];
        expect([answer.status, type]).toEqual([200, accept]);
      }
    }
  });

  test('by the events of an account, as text in both forms', async () => {
    const documented = Object.keys(operation('get /v1/events').responses['200']!.content);
    expect(documented).toEqual(['text/event-stream', 'application/jsonl']);
    for (const [format, type] of [
      ['sse', documented[0]],
      ['jsonl', documented[1]],
    ]) {
      const answer = await fetch(`${service.url}/v1/events?format=${format}`, {
        headers: { 'x-api-key': service.key },
      });
      expect([answer.status, answer.headers.get('content-type')!.split(';')[0]]).toEqual([
        200,
        type,
      ]);
      expect(answer.headers.get('x-request-id')).not.toBeNull();
      await answer.body!.cancel();
    }
  });

  test.each(EACH)('by %s, on success', async (name, ask) => {
    const reply = await ask();
    expect(reply.status).toBe(name === 'post /v1/replays' ? 202 : 200);
    expectDescribed(name, reply);
  });

  test('by a run in the background, with where its turn is to be had', async () => {
    const reply = await service.post(
      `/v1/agents/${agent}/run`,
      { input: 'hi' },
      { prefer: 'respond-async' },
    );
    expect(reply.status).toBe(202);
    expectDescribed('post /v1/agents/{agentId}/run', reply);
    expect(reply.headers.has('preference-applied')).toBe(true);
  });

  test('and the schemas are not empty: they refuse an answer with a member missing', async () => {
    const { body } = await service.get(`/v1/agents/${agent}`);
    delete body.data.config.instruction;
    expect(validatorFor('get /v1/agents/{agentId}', 200)(body)).toBe(false);
    const failure = (await service.get('/v1/agents/unknown')).body;
    expect(
      validatorFor('get /v1/agents/{agentId}', 404)({ ...failure, code: 'session_not_found' }),
    ).toBe(false);
  });

  test('by every operation that needs a key, without one and with one that lacks the scope', async () => {
    const stranger = apiClient(service.url, undefined);
    const reader = await clientWith(
      service.url,
      await newKey(service.folder, { scopes: ['sessions:read'] }),
    );
    const writer = await clientWith(
      service.url,
      await newKey(service.folder, { scopes: ['agents:write'] }),
    );
    for (const [name, { security }] of operations().filter(
      ([, { security: needed }]) => needed.length > 0,
    )) {
      const [method, template] = name.split(' ') as [string, string];
      const path = template
        .replace('{agentId}', agent)
        .replace('{sessionId}', session)
        .replace('{turn}', '1')
        .replace('{webhookId}', webhook);

      const ask = (client: Client): Promise<Reply> =>
        method === 'get' ? client.get(path) : client.send(method.toUpperCase(), path, {});
      expect(security).not.toEqual([]);
      expectDescribed(name, await ask(stranger));
      for (const limited of [reader, writer]) expectDescribed(name, await ask(limited));
      expectDescribed(
        name,
        await (method === 'get'
          ? service.get(`${path}?x=1`)
          : service.send(method.toUpperCase(), `${path}?x=1`, {})),
      );
    }
  });

  test.each([
    ['invalid_json', () => service.post('/v1/agents', '{')],
    ['invalid_request', () => service.post('/v1/agents', {})],
    [
      'model_not_supported',
      () => service.post('/v1/agents', { name: 'x', instruction: 'x', model: 'x' }),
    ],
    [
      'tool_not_supported',
      () =>
        service.post('/v1/agents', { name: 'x', instruction: 'x', model: 'scripted', tool: 'x' }),
    ],
    ['payload_too_large', () => service.post('/v1/agents', ' '.repeat(2_097_153))],
    [
      'unsupported_media_type',
      () => service.post('/v1/agents', '{}', { 'content-type': 'text/plain' }),
    ],
  ] as const)('by a creation that fails with %s', async (code, ask) => {
    const reply = await ask();
    expect(reply.body.code).toBe(code);
    expectDescribed('post /v1/agents', reply);
  });

  test.each([
    ['agent_not_found', () => service.post('/v1/agents/x/run', { input: 'x' })],
    [
      'session_not_found',
      () => service.post(`/v1/agents/${agent}/run`, { input: 'x', session_id: 'x' }),
    ],
    ['invalid_request', () => service.post(`/v1/agents/${agent}/run`, {})],
    ['model_error', () => faulty('malformed_json')],
    ['model_timeout', () => faulty('never_answer')],
    ['model_overloaded', () => overloaded()],
    ['tool_error', () => looping()],
  ] as const)('by a run that fails with %s', async (code, ask) => {
    const reply = await ask();
    expect(reply.body.code).toBe(code);
    expectDescribed('post /v1/agents/{agentId}/run', reply);
  });

  test('by what is not found', async () => {
    expectDescribed('get /v1/agents/{agentId}', await service.get('/v1/agents/x'));
    expectDescribed('get /v1/sessions/{sessionId}', await service.get('/v1/sessions/x'));
    expectDescribed(
      'get /v1/sessions/{sessionId}/events',
      await service.get('/v1/sessions/x/events'),
    );
  });
});

function runWith(script: Parameters<TestService['model']['use']>[0]): Promise<Reply> {
  service.model.use(script);
  return service.post(`/v1/agents/${agent}/run`, { input: 'hi' });
}
const faulty = (fault: ScriptedFault) => runWith({ fault });
const overloaded = () => runWith({ status: 429 });
const looping = () =>
  runWith({ tool_calls: [{ name: 'calculator', arguments: '{"expression":"1"}' }] });
