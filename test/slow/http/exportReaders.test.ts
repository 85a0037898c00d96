/** Exports of a real service, in the hands of the programs that they are made for. */
import { afterAll, expect, jest, test } from '@jest/globals';
import { exportReaders, type Understood } from '../../support/processes/exports/readers.ts';
import { exported } from '../../support/http/exported.ts';
import { startTestService } from '../../support/http/service.ts';
import { eventually } from '../../support/processes/operator.ts';
import { orSkip } from '../../support/processes/recipes/installed.ts';

jest.setTimeout(300_000);

const FORMATS = ['openai-chat', 'otel', 'inspect', 'atif'] as const;
const UNICODE = 'Größe? "𝄞" \\ \u2028 \u0007 漢字';

const read = await orSkip(
  exportReaders,
  'The readers of exports need Python 3 with venv, and a way to PyPI.',
);
const withReaders = read ? test : test.skip;
const service = await startTestService({ text: 'Hello.' }, { MODEL_MAX_RETRIES: '0' });
afterAll(() => service.close());

async function run(agent: string, input: string, session_id?: string): Promise<string> {
  const body = { input, ...(session_id !== undefined && { session_id }) };
  const answer = await service.post(`/v1/agents/${agent}/run`, body);
  return (answer.body.data?.session_id as string | undefined) ?? session_id ?? '';
}

/** What the readers make of a session. */
async function understood(session: string): Promise<Understood> {
  const texts: Record<string, string> = {};
  for (const format of FORMATS)
    texts[format] = (
      await exported(service, `/v1/sessions/${session}/export?format=${format}`)
    ).text;
  return read!(texts);
}

/** A turn with tools, one that failed, one that was cancelled, and one with an answer. */
async function eventful(): Promise<string> {
  const agent = await service.createAgent({ tool: 'calculator', temperature: 0.5 });
  service.model.use([
    {
      text: 'Let me see.',
      tool_calls: [
        { id: 'a', name: 'calculator', arguments: '{"expression":"1+1"}' },
        { id: 'b', name: 'calculator', arguments: '{"expression":' },
      ],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    },
    { text: UNICODE, usage: { prompt_tokens: 30, completion_tokens: 7, total_tokens: 37 } },
  ]);
  const session = await run(agent, UNICODE);
  service.model.use({ status: 500 });
  await run(agent, 'this fails', session);
  service.model.use({ fault: 'never_answer' });
  const path = `/v1/agents/${agent}/run`;
  const background = { prefer: 'respond-async' };
  await service.post(path, { input: 'this is cancelled', session_id: session }, background);
  await service.post(`/v1/sessions/${session}/cancel`, {});
  service.model.use({
    text: 'Cut',
    finish_reason: 'length',
    usage: { prompt_tokens: 50, completion_tokens: 1, total_tokens: 51 },
  });
  await run(agent, 'again', session);
  return session;
}

withReaders('an eventful session is understood by the readers of every format', async () => {
  const session = await eventful();
  const { data } = (await service.get(`/v1/sessions/${session}`)).body;
  const statuses = data.turns.map(({ status }: { status: string }) => status);
  expect(statuses).toEqual(['completed', 'failed', 'interrupted', 'completed']);
  const [result, wrong] = data.turns[0].tool_calls.map((call: { result: string }) => call.result);
  const read_ = await understood(session);

  expect(read_['openai-chat']).toEqual([
    [
      ['system', 'Be brief.'],
      ['user', UNICODE],
      ['assistant', 'Let me see.'],
      ['tool', result],
      ['tool', wrong],
      ['assistant', UNICODE],
      ['user', 'again'],
      ['assistant', 'Cut'],
    ],
  ]);

  const [log] = read_.inspect;
  expect(log).toMatchObject({
    id: session,
    status: 'success',
    model: 'scripted-upstream',
    input: UNICODE,
    completion: 'Cut',
    stop_reason: 'max_tokens',
    error: null,
  });
  expect(Object.values(log.usage)).toEqual([15 + 37 + 51]);
  expect(log.messages.map(({ role, text }: any) => [role, text])).toEqual([
    ['system', 'Be brief.'],
    ['user', UNICODE],
    ['assistant', 'Let me see.'],
    ['tool', result],
    ['tool', wrong],
    ['assistant', UNICODE],
    ['user', 'this fails'],
    ['user', 'this is cancelled'],
    ['user', 'again'],
    ['assistant', 'Cut'],
  ]);
  expect(log.messages[2].calls).toEqual([
    { arguments: { expression: '1+1' }, parse_error: null },
    { arguments: {}, parse_error: 'Not read as a JSON object: {"expression":' },
  ]);
  expect([log.messages[3].error, log.messages[4].error]).toEqual([null, wrong]);
  expect(log.messages[6].metadata.error.code).toBe('model_error');
  expect(log.messages[7].metadata.error.code).toBe('cancelled');

  const [trajectory] = read_.atif;
  expect(trajectory).toMatchObject({
    schema_version: 'ATIF-v1.7',
    session_id: session,
    agent: { name: 'Test', version: '0', model_name: 'scripted-upstream' },
    final_metrics: {
      total_prompt_tokens: 90,
      total_completion_tokens: 13,
      total_steps: trajectory.steps.length,
    },
  });
  expect(trajectory.agent.tool_definitions).toHaveLength(1);
  expect(trajectory.steps.map(({ source, message }: any) => [source, message])).toEqual([
    ['system', 'Be brief.'],
    ['user', UNICODE],
    ['agent', 'Let me see.'],
    ['agent', UNICODE],
    ['user', 'this fails'],
    ['system', data.turns[1].error.message],
    ['user', 'this is cancelled'],
    ['system', 'The turn was interrupted: cancelled.'],
    ['user', 'again'],
    ['agent', 'Cut'],
  ]);
  expect(trajectory.steps[2].tool_calls).toMatchObject([
    { tool_call_id: 'a', arguments: { expression: '1+1' } },
    { tool_call_id: 'b', arguments: {}, extra: { arguments_text: '{"expression":' } },
  ]);
  expect(trajectory.steps[2].observation.results).toMatchObject([
    { source_call_id: 'a', content: result, extra: { is_error: false } },
    { source_call_id: 'b', content: wrong, extra: { is_error: true } },
  ]);
  expect(trajectory.steps[2].metrics).toMatchObject({ prompt_tokens: 10, completion_tokens: 5 });

  expect(read_.otel.map((spans) => spans.map(({ name }: any) => name))).toEqual([
    [
      'chat scripted-upstream',
      'execute_tool calculator',
      'execute_tool calculator',
      'chat scripted-upstream',
      'invoke_agent Test',
    ],
    ['invoke_agent Test'],
    ['invoke_agent Test'],
    ['chat scripted-upstream', 'invoke_agent Test'],
  ]);
  const ids = read_.otel.flat().map(({ id }) => id);
  expect([new Set(ids).size, new Set(read_.otel.flat().map(({ trace }) => trace)).size]).toEqual([
    ids.length,
    4,
  ]);
  for (const spans of read_.otel) {
    const root = spans.at(-1);
    expect([root.parent, root.trace.length, root.id.length]).toEqual(['', 32, 16]);
    for (const span of spans.slice(0, -1)) {
      expect([span.trace, span.parent]).toEqual([root.trace, root.id]);
      expect(span.start).toBeGreaterThanOrEqual(root.start);
      expect(span.end).toBeGreaterThanOrEqual(span.start);
      expect(span.end).toBeLessThanOrEqual(root.end);
    }
  }
  const [chat, tool, failed, , turn] = read_.otel[0]!;
  expect(chat).toMatchObject({
    kind: 3,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.conversation.id': session,
      'gen_ai.request.temperature': 0.5,
      'gen_ai.response.finish_reasons': ['tool_calls'],
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 5,
    },
  });
  expect(JSON.parse(chat.attributes['gen_ai.input.messages'])).toEqual([
    { role: 'user', parts: [{ type: 'text', content: UNICODE }] },
  ]);
  expect(JSON.parse(chat.attributes['gen_ai.output.messages'])).toEqual([
    {
      role: 'assistant',
      parts: [
        { type: 'text', content: 'Let me see.' },
        { type: 'tool_call', id: 'a', name: 'calculator', arguments: { expression: '1+1' } },
        { type: 'tool_call', id: 'b', name: 'calculator', arguments: '{"expression":' },
      ],
      finish_reason: 'tool_call',
    },
  ]);
  expect(tool).toMatchObject({ kind: 1, status: 0, start: chat.end });
  expect(tool.attributes['gen_ai.tool.call.result']).toBe(result);
  expect(failed).toMatchObject({ status: 2, attributes: { 'error.type': 'tool_failed' } });
  expect(turn).toMatchObject({
    start: Date.parse(data.turns[0].started_at) * 1e6,
    status: 0,
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'Test',
      'gen_ai.agent.version': '0',
      'gen_ai.usage.input_tokens': 40,
    },
  });
  expect(read_.otel[1]!.at(-1)).toMatchObject({
    status: 2,
    attributes: { 'error.type': 'model_error' },
  });
  expect(read_.otel[2]!.at(-1).attributes['error.type']).toBe('cancelled');
});

withReaders('a session whose older turns were summed up is understood by all of them', async () => {
  const agent = await service.createAgent({ model: 'narrow', compaction: true });
  service.model.use(({ messages }) => ({
    text: messages[0]!.content!.includes('Sum it up') ? 'They asked.' : 'Yes.',
  }));
  let session: string | undefined;
  for (let turn = 1; turn <= 12; turn += 1)
    session = await run(agent, `question number ${turn}`, session);
  const { openai, otel, inspect, atif } = await understood(session!).then((all) => ({
    openai: all['openai-chat'],
    ...all,
  }));
  expect(openai[0]).toHaveLength(25);
  expect(JSON.stringify(openai)).not.toContain('They asked.');
  expect(inspect[0].messages).toHaveLength(25);
  const summaries = atif[0].steps.filter(({ extra }: any) => extra?.context_management);
  expect(summaries.length).toBeGreaterThan(0);
  expect(summaries[0]).toMatchObject({ source: 'system', message: 'They asked.' });
  const traces = otel.filter((spans) => spans[0].attributes['turnlog.compaction.up_to_turn']);
  expect(traces.map(([span]) => span.attributes['gen_ai.output.messages'])).toEqual(
    summaries.map(() => expect.stringContaining('They asked.')),
  );
});

withReaders(
  'a session whose last turn has no answer, and one whose agent was erased, are understood',
  async () => {
    const agent = await service.createAgent();
    service.model.use({ status: 500 });
    await run(agent, 'this fails');
    const [{ session_id }] = (await service.get('/v1/sessions?limit=1')).body.data;
    const failed = await understood(session_id as string);
    expect(failed['openai-chat']).toEqual([]);
    expect(failed.inspect[0]).toMatchObject({
      completion: '',
      error: expect.stringMatching(/^model_error: /),
    });
    service.model.use({ text: 'Hello.' });
    const session = await run(agent, 'hello');
    expect((await service.post(`/v1/agents/${agent}/erase`, '')).status).toBe(200);
    const erased = await eventually(
      () => understood(session),
      ({ atif }) => atif[0].agent.name === agent,
    );
    expect(erased.atif[0].steps.map(({ source }: any) => source)).toEqual(['user', 'agent']);
    expect(erased.otel[0]!.at(-1).name).toBe('invoke_agent');
  },
);
