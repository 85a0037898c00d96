import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import { isJsonObject } from '../../../shared/sessions/turns/requestForm.ts';
import type { Script, Step } from '../../support/fakes/scriptedModel.ts';
import { closeRebuilt, rebuiltRequests } from '../../support/http/rebuiltRequests.ts';
import { allEvents, openEvents } from '../../support/http/sse.ts';
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
