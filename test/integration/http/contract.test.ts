import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { apiClient, startTestService, type TestService } from '../../support/http/service.ts';

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const typeId = (prefix: string): RegExp => new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`);

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const create = (changes: Record<string, unknown> = {}) =>
  service.post('/v1/agents', {
    name: 'Sums',
    instruction: 'Add up.',
    model: 'scripted',
    ...changes,
  });
const listed = async (agent_id: string) =>
  ((await service.get('/v1/agents')).body.data as { agent_id: string }[]).find(
    (agent) => agent.agent_id === agent_id,
  );
const createAndList = async (): Promise<boolean> =>
  (await listed((await create()).body.data.agent_id)) !== undefined;
const text = async (path: string) =>
  (await fetch(service.url + path, { headers: { 'x-api-key': service.key } })).text();
const withoutRequestId = (body: string): unknown => ({
  ...(JSON.parse(body) as object),
  request_id: '',
});

describe('creating an agent', () => {
  test('answers 200 with its id and the instant of its creation, and nothing else', async () => {
    const { status, headers, body } = await create();
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(body).toEqual({
      success: true,
      data: {
        agent_id: expect.stringMatching(typeId('agent')),
        created_at: expect.stringMatching(ISO),
      },
      status: 200,
    });
  });

  test('keeps every text exactly as it was sent', async () => {
    const texts = {
      name: ' e\u0301 👩‍👩‍👧‍👦 ｎ ',
      instruction: 'Zeile 1\r\n\tZeile 2 \u2028 "\\ \u0001 \uFEFF 🇩🇪 \u{10FFFF}',
    };
    const { agent_id } = (await create(texts)).body.data;
    const { data } = (await service.get(`/v1/agents/${agent_id}`)).body;
    expect([data.name, data.config.name, data.config.instruction]).toEqual([
      texts.name,
      texts.name,
      texts.instruction,
    ]);
  });

  test.each([
    '',
    ' ',
    '\t',
    ' \u3000\u200b',
    'a\nb',
    'a\u0000',
    '\u001b[2J',
    'a\u202eb',
    'a\u2028',
    '\u009b',
    'x'.repeat(257),
    '\ud800',
  ])('refuses the name %j, and says why', async (name) => {
    const { status, body } = await create({ name });
    expect([status, body.code, Object.keys(body.details!)]).toEqual([
      400,
      'invalid_request',
      ['name'],
    ]);
  });

  test('takes a name of 256 characters that take two units each', async () => {
    expect((await create({ name: '😀'.repeat(256) })).status).toBe(200);
  });

  test('stores the component, which is Chat by default', async () => {
    const { agent_id } = (await create()).body.data;
    const component = async () => (await service.get(`/v1/agents/${agent_id}`)).body.data.component;
    expect(await component()).toBe('Chat');
    const chosen = (await create({ component: 'Carousel' })).body.data.agent_id;
    expect((await service.get(`/v1/agents/${chosen}`)).body.data.component).toBe('Carousel');
    await service.send('PATCH', `/v1/agents/${agent_id}`, { component: 'toString' });
    expect(await component()).toBe('toString');
    await service.send('PATCH', `/v1/agents/${agent_id}`, { component: null });
    expect(await component()).toBe('Chat');
  });

  test.each([
    ['model', 'nonsense', 'model_not_supported', 'scripted, narrow'],
    ['tool', 'nonsense', 'tool_not_supported', 'calculator, clock, web_fetch'],
    ['model', '__proto__', 'model_not_supported', 'scripted, narrow'],
    ['tool', 'constructor', 'tool_not_supported', 'calculator, clock, web_fetch'],
  ])(
    'with the %s %s is refused, and the message lists what is supported',
    async (field, value, code, supported) => {
      const { status, body } = await create({ [field]: value });
      expect([status, body.code]).toEqual([400, code]);
      expect(body.error).toContain(supported);
      expect(body.details).toEqual({ [field]: { message: body.error, path: `/${field}` } });
    },
  );
});

test('of several tools, the one that is not supported is named', async () => {
  const { body } = await create({ tool: 'calculator,clok' });
  expect(body.error).toMatch(/^The tool "clok" is not supported. Supported: calculator, /);
});

test('a condition that an operation would ignore is refused', async () => {
  const { agent_id } = (await create()).body.data;
  const session = (await service.post(`/v1/agents/${agent_id}/run`, { input: 'hi' })).body.data;
  const condition = { 'if-match': '"7-x"' };
  for (const [method, path] of [
    ['DELETE', `/v1/sessions/${session.session_id}`],
    ['POST', `/v1/agents/${agent_id}/erase`],
  ] as const) {
    const { status, body } = await service.send(method, path, '', condition);
    expect([status, body.code, Object.keys(body.details!)]).toEqual([
      400,
      'invalid_request',
      ['if-match'],
    ]);
  }
  expect((await service.get(`/v1/sessions/${session.session_id}`)).status).toBe(200);
});

describe('the list of agents', () => {
  test('shows each with id, name, config and instants, and no tool where none was set', async () => {
    const { agent_id, created_at } = (await create()).body.data;
    expect(await listed(agent_id)).toEqual({
      agent_id,
      name: 'Sums',
      config: { agent_id, name: 'Sums', instruction: 'Add up.', model: 'scripted' },
      created_at,
      updated_at: created_at,
      revision: 0,
    });
  });

  test('shows the tool in the config where one was set, and never the component', async () => {
    const { agent_id } = (await create({ tool: 'calculator', component: 'Chat' })).body.data;
    expect(await listed(agent_id)).toMatchObject({ config: { tool: 'calculator' } });
    expect(JSON.stringify(await listed(agent_id))).not.toContain('component');
  });

  test('is a plain JSON array in data, oldest first and complete', async () => {
    const created: string[] = [];
    for (let index = 0; index < 5; index += 1)
      created.push((await create()).body.data.agent_id as string);
    const { body } = await service.get('/v1/agents');
    expect(Object.keys(body)).toEqual(['success', 'data', 'status']);
    const ids = (body.data as { agent_id: string }[]).map(({ agent_id }) => agent_id);
    expect(ids.slice(-5)).toEqual(created);
    expect(ids).toEqual(ids.toSorted());
  });

  test('shows an agent at once after its creation was answered, also when many are created together', async () => {
    expect(await Promise.all(Array.from({ length: 60 }, createAndList))).toEqual(
      Array.from({ length: 60 }, () => true),
    );
    for (let round = 0; round < 20; round += 1) expect(await createAndList()).toBe(true);
  });
});

describe('one agent', () => {
  test('is answered as in the list, with its component', async () => {
    const { agent_id } = (await create({ tool: 'clock' })).body.data;
    const { status, body } = await service.get(`/v1/agents/${agent_id}`);
    expect(status).toBe(200);
    expect(body).toEqual({
      success: true,
      data: { ...(await listed(agent_id)), component: 'Chat', revision: 0 },
      status: 200,
    });
  });
});

describe('sessions', () => {
  test('are listed newest first, shown as a transcript, and given as recorded events', async () => {
    const agent = await service.createAgent();
    const run = async (input: string, session_id?: string) =>
      (await service.post(`/v1/agents/${agent}/run`, { input, ...(session_id && { session_id }) }))
        .body.data;
    const first = await run('a');
    const second = await run('b');
    await run('c', first.session_id);

    const list = (await service.get(`/v1/sessions?agent_id=${agent}`)).body;
    const session = {
      session_id: first.session_id,
      agent_id: agent,
      status: 'idle',
      turn_count: 2,
      title: null,
      labels: {},
      created_at: expect.stringMatching(ISO),
      updated_at: expect.stringMatching(ISO),
      revision: 4,
    };
    expect(list).toEqual({
      success: true,
      data: [{ ...session, session_id: second.session_id, turn_count: 1, revision: 2 }, session],
      status: 200,
    });

    const turn = {
      status: 'completed',
      output: 'Hello.',
      model: 'scripted-upstream-scripted',
      agent_revision: 0,
      tool_used: '',
      tool_calls: [],
      tokens: expect.any(Object),
      finish_reason: 'stop',
      error: null,
      started_at: expect.stringMatching(ISO),
      ended_at: expect.stringMatching(ISO),
    };
    const transcript = (await service.get(`/v1/sessions/${first.session_id}`)).body;
    expect(transcript).toEqual({
      success: true,
      data: {
        ...session,
        turns: [
          { ...turn, turn: 1, input: 'a', context: { turns: 0, dropped: 0 } },
          { ...turn, turn: 2, input: 'c', context: { turns: 1, dropped: 0 } },
        ],
      },
      status: 200,
    });
    expect(transcript.data.turns[0].tokens).toEqual(first.metadata.tokens);

    const events = (await service.get(`/v1/sessions/${first.session_id}/events`)).body
      .data as Record<string, unknown>[];
    expect(events.map(({ type }) => type)).toEqual([
      'session.started.v1',
      ...[1, 2].flatMap(() => ['session.turn_started.v1', 'session.turn_completed.v1']),
    ]);
    expect(events.map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4]);
    for (const event of events) {
      expect(Object.keys(event).toSorted()).toEqual([
        'data',
        'id',
        'metadata',
        'revision',
        'stream',
        'type',
      ]);
      expect(event).toMatchObject({
        stream: `session-${first.session_id}`,
        metadata: {
          account_id: expect.stringMatching(typeId('acct')),
          key_id: expect.stringMatching(typeId('key')),
          request_id: expect.any(String),
          causation_id: expect.any(String),
          recorded_at: expect.stringMatching(ISO),
          prev_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
          hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        },
      });
    }
  });

  const recordedIds = async (requestId: string): Promise<Set<string>> => {
    const agent = await service.createAgent();
    const path = `/v1/agents/${agent}/run`;
    const run = await service.post(path, { input: 'a' }, { 'x-request-id': requestId });
    expect(run.headers.get('x-request-id')).toBe(requestId);
    const { session_id } = run.body.data;
    const events = (await service.get(`/v1/sessions/${session_id}/events`)).body.data as {
      metadata: { request_id: string };
    }[];
    return new Set(events.map(({ metadata }) => metadata.request_id));
  };

  test.each(['0ba5cf1e-9d0c-4b5e-8f53-0f4b1a9b7c11', '01A20125-5E3B-789D-A191-974794DEB504'])(
    'name in their events the request that led to them: %s',
    async (id) => {
      expect(await recordedIds(id)).toEqual(new Set([id]));
    },
  );

  // The last one is a UUID that is the hash of a name.
  test.each(['trace-me.1:2_3', 'Ada', '0ba5cf1e-9d0c-5b5e-8f53-0f4b1a9b7c11'])(
    'name a request by a new id in their events where its own, %s, could be text',
    async (id) => {
      const [recorded, ...others] = await recordedIds(id);
      expect(others).toEqual([]);
      expect(recorded).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
    },
  );
});

describe('the catalogues', () => {
  test('list the models without their upstream names, and the tools with the schema of their arguments', async () => {
    expect((await service.get('/v1/models')).body).toEqual({
      success: true,
      data: [
        { id: 'scripted', provider: 'script', context_window: 1_000_000 },
        { id: 'narrow', provider: 'script', context_window: 200, max_output_tokens: 50 },
      ],
      status: 200,
    });
    const tools = (await service.get('/v1/tools')).body;
    expect(tools.data.map(({ name }: { name: string }) => name)).toEqual([
      'calculator',
      'clock',
      'web_fetch',
    ]);
    for (const tool of tools.data)
      expect(tool).toEqual({
        name: expect.any(String),
        description: expect.any(String),
        parameters: expect.objectContaining({ type: 'object' }),
      });
  });
});

describe('any answer', () => {
  test.each([
    '/v1/agents',
    '/v1/models',
    '/v1/sessions',
    '/health/live',
    '/openapi.json',
    '/v1/agents/unknown',
  ])('of %s is pretty-printed with pretty=true and only then', async (path) => {
    const pretty = await text(`${path}?pretty=true`);
    const plain = await text(`${path}?pretty=false`);
    expect(withoutRequestId(pretty)).toEqual(withoutRequestId(plain));
    expect(pretty).toBe(`${JSON.stringify(JSON.parse(pretty), null, 2)}\n`);
    expect(plain).toBe(JSON.stringify(JSON.parse(plain)));
    expect(JSON.stringify(withoutRequestId(await text(path)))).toBe(
      JSON.stringify(withoutRequestId(plain)),
    );
  });

  test.each(['a', 'A-b_c.d:e', '0'.repeat(128)])(
    'carries the X-Request-Id that the client chose: %s',
    async (id) => {
      expect(
        (await service.get('/v1/agents', { 'x-request-id': id })).headers.get('x-request-id'),
      ).toBe(id);
      const failure = await service.get('/v1/agents/unknown', { 'x-request-id': id });
      expect([failure.headers.get('x-request-id'), failure.body.request_id]).toEqual([id, id]);
    },
  );

  test.each(['', 'with space', '0'.repeat(129), '<script>', 'é', 'a,b'])(
    'carries a new X-Request-Id where the client sent %j',
    async (id) => {
      const { headers, body } = await service.get('/v1/agents/unknown', { 'x-request-id': id });
      expect(headers.get('x-request-id')).toMatch(
        /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/,
      );
      expect(body.request_id).toBe(headers.get('x-request-id'));
    },
  );

  test('that tells about the service itself needs no key', async () => {
    const stranger = apiClient(service.url, undefined);
    expect((await stranger.get('/health/live')).body).toEqual({
      success: true,
      data: { status: 'live' },
      status: 200,
    });
    expect((await stranger.get('/health/ready')).body).toMatchObject({
      success: true,
      data: {
        status: 'ready',
        projection: { caught_up: true, parked_streams: [] },
        runs_in_flight: 0,
        runs_waiting: 0,
      },
      status: 200,
    });
    expect((await stranger.get('/openapi.json')).body).toMatchObject({ openapi: '3.1.0' });
  });
});
