import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import { isJsonObject } from '../../../shared/sessions/turns/requestForm.ts';
import type { Script, Step } from '../../support/fakes/scriptedModel.ts';
import { eventually } from '../../support/processes/operator.ts';
import { closeRebuilt, rebuiltRequests } from '../../support/http/rebuiltRequests.ts';
import { allEvents, openEvents, textIn } from '../../support/http/sse.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => closeRebuilt(service));

/** The requests of runs with these inputs in one session, and the session. */
async function converse(agent: string, script: Script, ...inputs: string[]) {
  service.model.use(script);
  const first = service.model.requests.length;
  let session_id: string | undefined;
  for (const input of inputs) {
    const body = { input, ...(session_id !== undefined && { session_id }) };
    const reply = await service.post(`/v1/agents/${agent}/run`, body);
    expect([reply.status, reply.body.error]).toEqual([200, undefined]);
    session_id = reply.body.data.session_id as string;
  }
  return { session_id: session_id!, requests: service.model.requests.slice(first) };
}
const eventsOf = async (session: string) =>
  (await service.get(`/v1/sessions/${session}/events`)).body.data as any[];

/** A server that accepts no field that it does not know. */
const strict =
  (known: string[], step: (request: ChatRequest) => Step): Script =>
  (request) => {
    const unknown = Object.keys(request).find((name) => !known.includes(name));
    return unknown === undefined
      ? step(request)
      : { status: 422, body: { detail: [{ loc: ['body', unknown], type: 'extra_forbidden' }] } };
  };

test('a limit is sent in the field that the server knows, and the request can be rebuilt', async () => {
  const agent = await service.createAgent({ max_output_tokens: 40 });
  const script = strict(['model', 'messages', 'max_tokens'], () => ({ text: 'Hi.' }));
  const { session_id, requests } = await converse(agent, script, 'one', 'two');
  expect(requests.map(({ max_tokens }) => max_tokens)).toEqual([undefined, 40, 40]);
  const [call] = (await eventsOf(session_id)).at(-1).data.calls;
  expect(call.form).toEqual({ max_tokens_field: 'max_tokens' });
  const rebuilt = await rebuiltRequests(service, session_id);
  expect(rebuilt.map(({ request }) => request)).toEqual(requests.slice(1));
});

test("a model's mistakes are recorded as they are, and strict servers accept what is sent back", async () => {
  const agent = await service.createAgent({ tool: 'calculator' });
  const mistakes = [
    { name: 'ключ!', arguments: '{}' },
    { name: 'calculator', arguments: '{"expression": 1+' },
    { name: 'calculator', arguments: '[]' },
    { name: 'calculator', arguments: '' },
  ];
  const isValid = ({ messages }: ChatRequest): boolean =>
    messages
      .flatMap((message) => (message.role === 'assistant' ? (message.tool_calls ?? []) : []))
      .every(
        ({ function: { name, arguments: args } }) => /^[\w-]+$/.test(name) && isJsonObject(args),
      );
  const script: Script = (request, index) =>
    isValid(request)
      ? index === 0
        ? { tool_calls: mistakes }
        : { text: 'Sorry.' }
      : { status: 400, body: { error: { message: 'Invalid tool call.' } } };
  const { session_id, requests } = await converse(agent, script, 'try', 'again');
  const calls = (await eventsOf(session_id)).filter(
    ({ type }) => type === 'session.tool_called.v1',
  );
  expect(
    calls.map(({ data }) => ({ name: data.tool.text, arguments: data.arguments.text })),
  ).toEqual(mistakes);
  const results = requests.at(-1)!.messages.filter(({ role }) => role === 'tool');
  expect(results.map(({ content }) => content)).toEqual([
    'There is no function "ключ!".',
    'The arguments of calculator are not valid JSON: {"expression": 1+',
    expect.stringMatching(/do not fit/),
    expect.stringMatching(/do not fit/),
  ]);
  const rebuilt = await rebuiltRequests(service, session_id);
  expect(rebuilt.map(({ request }) => request)).toEqual(requests);
});

describe('reasoning and the fields that a provider adds to tool calls', () => {
  const extra = { extra_content: { google: { thought_signature: 'c2lnbmF0dXJl' } } };
  const script: Script = (_request, index) =>
    index === 0
      ? {
          reasoning: 'I have to add.',
          text: 'Let me see.',
          tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}', extra }],
        }
      : { reasoning: 'It is two.', text: 'Two.' };

  test('are sent back with the calls, recorded as protected texts, and shown on request', async () => {
    const agent = await service.createAgent({ tool: 'calculator' });
    const { session_id, requests } = await converse(agent, script, '1+1?', 'Sure?');
    const asked = {
      role: 'assistant',
      content: 'Let me see.',
      reasoning_content: 'I have to add.',
      tool_calls: [expect.objectContaining(extra)],
    };
    expect(requests.slice(1).map(({ messages }) => messages[2])).toEqual([asked, asked]);
    const rebuilt = await rebuiltRequests(service, session_id);
    expect(rebuilt.map(({ request }) => request)).toEqual(requests);

    const path = `/v1/sessions/${session_id}`;
    expect(JSON.stringify((await service.get(path)).body)).not.toMatch(/reasoning|signature/);
    const [turn] = (await service.get(`${path}?reasoning=true`)).body.data.turns;
    expect([turn.tool_calls[0].reasoning, turn.reasoning]).toEqual([
      'I have to add.',
      'It is two.',
    ]);
    expect((await service.get(`${path}/turns/1?reasoning=true`)).body.data).toEqual(turn);

    const isText = {
      sha256: expect.any(String),
      salt: expect.any(String),
      text: expect.any(String),
    };
    const [, , called, completed] = await eventsOf(session_id);
    expect([called.data.reasoning, called.data.extra, completed.data.reasoning]).toEqual([
      isText,
      isText,
      isText,
    ]);
    expect((await service.send('DELETE', path, '')).status).toBe(200);
    const erased = await service.get(`${path}/events`);
    expect(JSON.stringify(erased.body)).not.toMatch(/have to add|c2lnbmF0dXJl|It is two/);
  });

  test('stream as deltas of their own, live and from the record, and continue after any of them', async () => {
    const agent = await service.createAgent({ tool: 'calculator' });
    service.model.use(script);
    const headers = { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ input: '1+1?' });
    const url = `${service.url}/v1/agents/${agent}/run`;
    const live = await allEvents(await openEvents(url, { method: 'POST', headers, body }));
    const { session_id } = live[0]!.data;
    const stream = `${service.url}/v1/sessions/${session_id}/turns/1/stream`;
    const recorded = await allEvents(await openEvents(stream, { headers }));
    const textOf = (events: typeof live, kind: string, round: number): string =>
      events
        .filter(({ event }) => event === kind)
        .map(({ data }) => (data.round === round ? data.text : ''))
        .join('');
    for (const events of [live, recorded]) {
      expect(textOf(events, 'reasoning.delta', 1)).toBe('I have to add.');
      expect(textOf(events, 'output.delta', 1)).toBe('Let me see.');
      expect(textOf(events, 'reasoning.delta', 2)).toBe('It is two.');
      expect(textOf(events, 'output.delta', 2)).toBe('Two.');
    }
    const kinds = recorded.map(({ event }) => event);
    expect(kinds).toEqual([
      'turn.started',
      'reasoning.delta',
      'output.delta',
      'tool.called',
      'reasoning.delta',
      'output.delta',
      'turn.completed',
    ]);
    for (const [at, { id }] of recorded.entries()) {
      if (id === undefined || at === recorded.length - 1) continue;
      const rest = await openEvents(stream, { headers: { ...headers, 'last-event-id': id } });
      expect((await allEvents(rest)).map(({ event }) => event)).toEqual(kinds.slice(at + 1));
    }
    const delta = recorded[1]!;
    const half = delta.id!.replace(/\d+$/, '7');
    const rest = await openEvents(stream, { headers: { ...headers, 'last-event-id': half } });
    expect((await allEvents(rest))[0]!.data.text).toBe('I have to add.'.slice(7));
  });
});

describe('a run in the background', () => {
  const start = async (agent: string): Promise<string> => {
    const headers = { prefer: 'respond-async' };
    const reply = await service.post(`/v1/agents/${agent}/run`, { input: '1+1?' }, headers);
    expect(reply.status).toBe(202);
    return `${service.url}/v1/sessions/${reply.body.data.session_id}/turns/1/stream`;
  };
  const open = (url: string) => openEvents(url, { headers: { 'x-api-key': service.key } });
  const kindsIn = async (url: string) =>
    (await allEvents(await open(url))).map(({ event, data }) => [event, data.text]);

  test('asks for no stream while nobody follows it, and followers get its whole text', async () => {
    const first = service.model.requests.length;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    service.model.use(async () => {
      await released;
      return { reasoning: 'It is two.', text: 'Two.' };
    });
    const url = await start(await service.createAgent());
    await service.model.received(first + 1);
    const following = kindsIn(url);
    release();
    const expected = [
      ['turn.started', undefined],
      ['reasoning.delta', 'It is two.'],
      ['output.delta', 'Two.'],
      ['turn.completed', undefined],
    ];
    expect(await following).toEqual(expected);
    expect(await kindsIn(url)).toEqual(expected);
    expect(service.model.requests.at(-1)).not.toHaveProperty('stream');
  });

  test('asks for a stream from the next model call on, once it is followed', async () => {
    const first = service.model.requests.length;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    service.model.use(async (_request, index) => {
      if (index > 0) return { text: 'It is two.' };
      await released;
      return { tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }] };
    });
    const url = await start(await service.createAgent({ tool: 'calculator' }));
    const { events } = await open(url);
    expect((await events.next()).value.event).toBe('turn.started');
    const rest = allEvents({ events } as Awaited<ReturnType<typeof open>>);
    // The follower waits for output by now: its next read is pending.
    await new Promise(setImmediate);
    release();
    const heard = await rest;
    expect(textIn(heard, 2)).toBe('It is two.');
    expect(service.model.requests.slice(first).map((request) => 'stream' in request)).toEqual([
      false,
      true,
    ]);
  });
});

describe('a server at OPENAI_BASE_URL, without a models file', () => {
  const offered = async (): Promise<string[]> =>
    ((await service.get('/v1/models')).body.data as { id: string }[]).map(({ id }) => id);
  const start = () =>
    service.restart({
      MODELS_FILE: '',
      OPENAI_API_KEY: '',
      OPENAI_BASE_URL: service.model.baseUrl,
    });

  test('is asked for its models, which are offered and can be run', async () => {
    service.model.list({ data: [{ id: 'llama', max_model_len: 4_096 }, { id: 'qwen' }] });
    await start();
    expect(await offered()).toEqual(['llama', 'qwen']);
    const agent = await service.createAgent({ model: 'qwen' });
    const { requests } = await converse(agent, { text: 'Hi.' }, 'Hello');
    expect(requests.map(({ model }) => model)).toEqual(['qwen']);
  });

  test("that does not list them serves OpenAI's until it does", async () => {
    service.model.list(undefined);
    await start();
    expect(await offered()).toContain('gpt-4o');
    service.model.list({ data: [{ id: 'llama' }] });
    await eventually(offered, (ids) => ids.join() === 'llama');
  });
});
