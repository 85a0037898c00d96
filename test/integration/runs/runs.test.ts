import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { ChatMessage } from '../../../shared/sessions/turns/chat.ts';
import { canonicalJson } from '../../../shared/eventlog/canonicalJson.ts';
import { appendEvents, headOf } from '../../../shared/eventlog/append.ts';
import { decodeEvent } from '../../../shared/eventlog/codec.ts';
import { sha256 } from '../../../shared/eventlog/hashChain.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { asOperator } from '../../support/processes/operator.ts';
import { closeRebuilt } from '../../support/http/rebuiltRequests.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
beforeEach(() => service.model.use({ text: 'Hello.' }));
afterAll(() => closeRebuilt(service));

const run = (agent: string, input: string, session_id?: string) =>
  service.post(`/v1/agents/${agent}/run`, {
    input,
    ...(session_id === undefined ? {} : { session_id }),
  });
const lastMessages = (): ChatMessage[] => service.model.requests.at(-1)!.messages;
const transcript = async (session: string) =>
  (await service.get(`/v1/sessions/${session}`)).body.data;
const events = async (session: string) =>
  (await service.get(`/v1/sessions/${session}/events`)).body.data as any[];

describe('a run', () => {
  test('answers with output, session and what the provider reported, in the envelope of the contract', async () => {
    service.model.use({
      text: 'Four.',
      model: 'reported-model',
      usage: { prompt_tokens: 11, completion_tokens: 2, total_tokens: 13 },
    });
    const agent = await service.createAgent();
    const { status, body } = await run(agent, '2+2?');
    expect(status).toBe(200);
    expect(body).toEqual({
      success: true,
      data: {
        output: 'Four.',
        session_id: expect.stringMatching(/^session_[0-7][0-9a-hjkmnp-tv-z]{25}$/),
        metadata: {
          model: 'reported-model',
          tool_used: '',
          tokens: { prompt: 11, completion: 2, total: 13 },
          finish_reason: 'stop',
          context: { turns: 0, dropped: 0 },
        },
      },
      status: 200,
    });
  });

  test('sends the instruction and the input to the upstream model, and nothing else for a new session', async () => {
    const agent = await service.createAgent({ instruction: 'Speak like a pirate.' });
    await run(agent, 'Hi');
    expect(service.model.requests.at(-1)).toEqual({
      model: 'scripted-upstream',
      messages: [
        { role: 'system', content: 'Speak like a pirate.' },
        { role: 'user', content: 'Hi' },
      ],
    });
  });

  test('continues the session that session_id names, oldest turn first', async () => {
    const agent = await service.createAgent();
    service.model.use([{ text: 'one' }, { text: 'two' }, { text: 'three' }]);
    const { session_id } = (await run(agent, 'a')).body.data;
    await run(agent, 'b', session_id);
    const third = await run(agent, 'c', session_id);
    expect(third.body.data).toMatchObject({ output: 'three', session_id });
    expect(lastMessages().map(({ role, content }) => [role, content])).toEqual([
      ['system', 'Be brief.'],
      ['user', 'a'],
      ['assistant', 'one'],
      ['user', 'b'],
      ['assistant', 'two'],
      ['user', 'c'],
    ]);
  });

  test('shows a narrow model only the newest turns that fit, and the instruction always', async () => {
    const agent = await service.createAgent({ model: 'narrow' });
    service.model.use((_request, index) => ({ text: `answer ${index} ${'word '.repeat(10)}` }));
    let session_id: string | undefined;
    for (let turn = 0; turn < 12; turn += 1)
      session_id = (await run(agent, `question ${turn} ${'word '.repeat(10)}`, session_id)).body
        .data.session_id;
    const sent = lastMessages();
    expect(sent[0]).toEqual({ role: 'system', content: 'Be brief.' });
    expect(sent.length).toBeGreaterThan(3);
    expect(sent.length).toBeLessThan(12);
    expect(sent.slice(1).map(({ role }) => role)).toEqual(
      sent.slice(1).map((_, index) => (index % 2 === 0 ? 'user' : 'assistant')),
    );
    const shown = (sent.length - 2) / 2;
    expect(sent[1]!.content).toContain(`question ${11 - shown} `);
    const started = (await events(session_id!))
      .filter(({ type }) => type === 'session.turn_started.v1')
      .at(-1);
    expect(started.data.context_from_turn).toBe(12 - shown);
  });

  test('is refused before anything is recorded when the input alone is too long for the model', async () => {
    const agent = await service.createAgent({ model: 'narrow' });
    const { session_id } = (await run(agent, 'short')).body.data;
    const { status, body } = await run(agent, 'word '.repeat(400), session_id);
    expect([status, body.code]).toEqual([400, 'invalid_request']);
    expect(body.details).toHaveProperty('input');
    expect((await transcript(session_id)).turn_count).toBe(1);
  });

  test.each([
    ['no usage', null],
    ['a usage of zeros', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
  ])('is counted, and marked as counted, when the provider reports %s', async (_, usage) => {
    service.model.use({ text: 'one two three', usage });
    const { session_id, metadata } = (await run(await service.createAgent(), 'hello world')).body
      .data;
    expect(metadata.tokens).toEqual({
      prompt: expect.any(Number),
      completion: 3,
      total: metadata.tokens.prompt + 3,
    });
    expect(metadata.tokens.prompt).toBeGreaterThan(4);
    expect((await events(session_id)).at(-1).data.calls[0]).toMatchObject({
      tokens: metadata.tokens,
      counted: true,
    });
  });

  test('is not marked as counted when the provider reports a usage', async () => {
    const { session_id } = (await run(await service.createAgent(), 'Hi')).body.data;
    expect((await events(session_id)).at(-1).data.calls[0]).not.toHaveProperty('counted');
  });

  test('is recorded so that every model request can be built again from the events, and its hash checked', async () => {
    const agent = await service.createAgent({ tool: 'calculator' });
    service.model.use([
      {
        text: 'Let me see.',
        tool_calls: [{ name: 'calculator', arguments: '{"expression": "6*7"}' }],
      },
      { text: '42' },
    ]);
    const before = service.model.requests.length;
    const { session_id } = (await run(agent, '6*7?')).body.data;
    const completed = (await events(session_id)).at(-1);
    expect(completed.type).toBe('session.turn_completed.v1');
    expect(completed.data.calls.map((call: any) => call.request_sha256.text)).toEqual(
      service.model.requests.slice(before).map((request) => sha256(canonicalJson(request))),
    );
  });
});

describe('a turn that somebody else ends', () => {
  test('is answered 503 turn_interrupted, stays as it was ended, and the session goes on', async () => {
    const agent = await service.createAgent();
    const { session_id } = (await run(agent, 'first')).body.data;
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    service.model.use(() => gate.then(() => ({ text: 'too late' })));
    const asked = service.model.requests.length;
    const running = run(agent, 'second', session_id);
    await service.model.received(asked + 1);
    await asOperator(service.folder, async ({ store }) => {
      const stream = `session-${session_id as string}`;
      const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
      const recorded = decodeEvent(last!);
      const interrupted = {
        id: randomUUID(),
        type: 'session.turn_interrupted.v1',
        data: { turn: 2, reason: 'deadline' },
      };
      const { hash: _hash, prev_hash: _before, ...authored } = recorded.metadata;
      const authorship = {
        ...authored,
        key_id: 'system',
        request_id: 'recovery',
        causation_id: recorded.id,
      };
      await appendEvents(
        store,
        { stream, head: headOf(recorded) },
        { events: [interrupted], authorship },
      );
    });
    open();
    const reply = await running;
    expectFailure(reply, 'turn_interrupted');
    expect(reply.headers.get('retry-after')).toBe('1');
    service.model.use({ text: 'third' });
    expect((await run(agent, 'third', session_id)).status).toBe(200);
    expect((await transcript(session_id)).turns.map((turn: any) => turn.status)).toEqual([
      'completed',
      'interrupted',
      'completed',
    ]);
  });
});

describe('tools', () => {
  test('are called by the model, recorded, and answered with usage summed over the rounds', async () => {
    const agent = await service.createAgent({ tool: 'calculator' });
    const usage = { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 };
    service.model.use([
      {
        tool_calls: [{ id: 'call_a', name: 'calculator', arguments: '{"expression":"12*34"}' }],
        usage,
      },
      { text: '408.', usage },
    ]);
    const { data } = (await run(agent, 'What is 12*34?')).body;
    expect(data).toMatchObject({
      output: '408.',
      metadata: { tool_used: 'calculator', tokens: { prompt: 20, completion: 2, total: 22 } },
    });
    const [turn] = (await transcript(data.session_id)).turns;
    expect(turn.tool_calls).toEqual([
      {
        round: 1,
        call_id: 'call_a',
        tool: 'calculator',
        arguments: '{"expression":"12*34"}',
        result: '408',
        is_error: false,
        duration_ms: expect.any(Number),
      },
    ]);
    expect(lastMessages().slice(2)).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'call_a',
            type: 'function',
            function: { name: 'calculator', arguments: '{"expression":"12*34"}' },
          },
        ],
      },
      { role: 'tool', content: '408', tool_call_id: 'call_a' },
    ]);
    expect((await events(data.session_id)).map(({ type }) => type)).toEqual([
      'session.started.v1',
      'session.turn_started.v1',
      'session.tool_called.v1',
      'session.turn_completed.v1',
    ]);
  });

  test.each([
    ['fails', 'calculator', '{"expression":"1/0"}'],
    ['is given bad arguments', 'calculator', '{"expresion":1}'],
    ['is given broken JSON', 'calculator', '{"expression'],
    ['does not exist', 'no_such_function', '{}'],
  ])('tell the model when the function %s, and the run goes on', async (_what, name, args) => {
    const agent = await service.createAgent({ tool: 'calculator' });
    service.model.use([{ tool_calls: [{ name, arguments: args }] }, { text: 'I could not.' }]);
    const { status, body } = await run(agent, 'try');
    expect([status, body.data.output]).toEqual([200, 'I could not.']);
    const [turn] = (await transcript(body.data.session_id)).turns;
    expect(turn.tool_calls[0]).toMatchObject({ tool: name, arguments: args, is_error: true });
    expect(lastMessages().at(-1)).toEqual({
      role: 'tool',
      content: turn.tool_calls[0].result,
      tool_call_id: turn.tool_calls[0].call_id,
    });
  });

  test('end the turn as failed after eight rounds without an answer', async () => {
    const agent = await service.createAgent({ tool: 'calculator' });
    service.model.use({ tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }] });
    const before = service.model.requests.length;
    const { status, body } = await run(agent, 'for ever');
    expect([status, body.code]).toEqual([502, 'tool_error']);
    expect(service.model.requests.length - before).toBe(8);
  });
});

describe('sessions', () => {
  test('that do not exist, are malformed or belong to another agent are the same 404, and nothing is recorded', async () => {
    const [agent, other] = [await service.createAgent(), await service.createAgent()];
    const { session_id } = (await run(agent, 'mine')).body.data;
    const answers = await Promise.all([
      run(agent, 'x', 'session_01kahz1c3sf6w9m3v5q7x9z1a3'),
      run(agent, 'x', 'nonsense'),
      run(other, 'x', session_id),
    ]);
    for (const { status, body } of answers)
      expect([status, body.code, body.error]).toEqual([
        404,
        'session_not_found',
        answers[0].body.error,
      ]);
    expect((await events(session_id)).length).toBe(3);
  });

  test('take their runs one after the other, and the history never interleaves', async () => {
    const agent = await service.createAgent();
    const { session_id } = (await run(agent, 'first')).body.data;
    service.model.use((request) => ({
      text: `re: ${request.messages.at(-1)!.content}`,
      delay_ms: 5,
    }));
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => run(agent, `q${index}`, session_id)),
    );
    expect(answers.map(({ status, body }) => [status, body.data.output])).toEqual(
      answers.map((_, index) => [200, `re: q${index}`]),
    );
    const { turns } = await transcript(session_id);
    expect(turns.length).toBe(9);
    for (const turn of turns.slice(1)) expect(turn.output).toBe(`re: ${turn.input}`);
    const types = (await events(session_id)).map(({ type }) => type).slice(1);
    expect(types).toEqual(
      types.map((_, index) =>
        index % 2 === 0 ? 'session.turn_started.v1' : 'session.turn_completed.v1',
      ),
    );
  });
});

describe('a session that is held for too long', () => {
  test('answers 409 session_busy, and the run that holds it is not disturbed', async () => {
    const impatient = await startTestService({ text: 'quick' }, { RUN_WAIT_MS: '50' });
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    try {
      const agent = await impatient.createAgent();
      const { session_id } = (await impatient.post(`/v1/agents/${agent}/run`, { input: 'a' })).body
        .data;
      impatient.model.use(() => gate.then(() => ({ text: 'slow' })));
      const holding = impatient.post(`/v1/agents/${agent}/run`, { input: 'b', session_id });
      await impatient.model.received(2);
      const waiter = await impatient.post(`/v1/agents/${agent}/run`, { input: 'c', session_id });
      open();
      const holder = await holding;
      expect([holder.status, waiter.status, waiter.body.code]).toEqual([200, 409, 'session_busy']);
      expect((await impatient.get(`/v1/sessions/${session_id}`)).body.data.turn_count).toBe(2);
    } finally {
      await impatient.close();
    }
  });
});
