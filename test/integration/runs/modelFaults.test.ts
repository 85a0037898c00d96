import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import { expectFailure } from '../../support/http/failures.ts';
import type { Script } from '../../support/fakes/scriptedModel.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
let agent: string;
beforeAll(async () => {
  service = await startTestService(
    { text: 'Hello.' },
    { MODEL_MAX_RETRIES: '0', MODEL_ATTEMPT_TIMEOUT_MS: '2000' },
  );
  agent = await service.createAgent();
  // The client library is loaded at the first call, which must not count against the time limit of
  // the faults.
  await service.post(`/v1/agents/${agent}/run`, { input: 'warm up' });
});
afterAll(() => service.close());

const run = (input: string, session_id?: string) =>
  service.post(`/v1/agents/${agent}/run`, { input, ...(session_id && { session_id }) });
const transcript = async (session: string) =>
  (await service.get(`/v1/sessions/${session}`)).body.data;
const lastMessages = () =>
  service.model.requests.at(-1)!.messages.map(({ role, content }) => [role, content]);

interface Fault {
  script: Script;
  code: ErrorCode;
  retryAfter?: string;
  /** The recorded calls, which the provider has counted. */
  calls?: unknown[];
}

const FAULTS: Record<string, Fault> = {
  'answers 400': { script: { status: 400 }, code: 'model_error' },
  'answers 401': { script: { status: 401 }, code: 'model_error' },
  'answers 403': { script: { status: 403 }, code: 'model_error' },
  'answers 404': { script: { status: 404, body: 'no such model' }, code: 'model_error' },
  'answers 429 with retry-after': {
    script: { status: 429, headers: { 'retry-after': '7' } },
    code: 'model_overloaded',
    retryAfter: '7',
  },
  'answers 429 without retry-after': {
    script: { status: 429 },
    code: 'model_overloaded',
    retryAfter: '1',
  },
  'answers 500': { script: { status: 500 }, code: 'model_error' },
  'answers 503 with retry-after': {
    script: { status: 503, headers: { 'retry-after': '3' } },
    code: 'model_overloaded',
    retryAfter: '3',
  },
  'answers malformed JSON': { script: { fault: 'malformed_json' }, code: 'model_error' },
  'answers no JSON at all': {
    script: { status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Hello</h1>' },
    code: 'model_error',
  },
  'answers JSON that is no completion': {
    script: { status: 200, body: { choices: 'none' } },
    code: 'model_error',
  },
  'answers an empty choice': {
    script: { fault: 'empty_choice' },
    code: 'model_error',
    calls: [expect.objectContaining({ finish_reason: 'stop' })],
  },
  'answers no choice': { script: { fault: 'no_choices' }, code: 'model_error' },
  'stalls after the headers': { script: { fault: 'stall_after_headers' }, code: 'model_timeout' },
  'stalls in the body': { script: { fault: 'stall_in_body' }, code: 'model_timeout' },
  'says nothing at all': { script: { fault: 'never_answer' }, code: 'model_timeout' },
  'resets the connection before the answer': {
    script: { fault: 'reset_before_answer' },
    code: 'model_error',
  },
  'resets the connection in mid-answer': {
    script: { fault: 'reset_in_body' },
    code: 'model_error',
  },
};

describe.each(Object.entries(FAULTS))(
  'a model server that %s',
  (_what, { script, code, retryAfter, calls = [] }) => {
    test(`gives ${code}, is recorded with that code, and the session goes on with alternating messages`, async () => {
      service.model.use({ text: 'one' });
      const { session_id } = (await run('first')).body.data;

      service.model.use(script);
      const answer = await run('second', session_id);
      const { error } = expectFailure(answer, code);
      expect(answer.headers.get('retry-after')).toBe(retryAfter ?? null);
      const failed = (await transcript(session_id)).turns[1];
      expect(failed).toMatchObject({
        turn: 2,
        status: 'failed',
        input: 'second',
        output: null,
        error: { code, message: error },
        ended_at: expect.any(String),
      });
      const events = (await service.get(`/v1/sessions/${session_id}/events`)).body.data;
      expect(events.at(-1)).toMatchObject({
        type: 'session.turn_failed.v1',
        data: { turn: 2, code, message: { text: error }, calls },
      });

      service.model.use({ text: 'three' });
      expect((await run('third', session_id)).body.data).toMatchObject({
        output: 'three',
        session_id,
      });
      expect(lastMessages()).toEqual([
        ['system', 'Be brief.'],
        ['user', 'first'],
        ['assistant', 'one'],
        ['user', 'third'],
      ]);
      expect(
        (await transcript(session_id)).turns.map(({ status }: { status: string }) => status),
      ).toEqual(['completed', 'failed', 'completed']);
    });
  },
);

test('the first turn of a session may fail, and the session goes on', async () => {
  service.model.use({ status: 500 });
  expectFailure(await run('first'), 'model_error');
  const { session_id } = (await service.get('/v1/sessions?limit=1')).body.data[0];
  expect(await transcript(session_id)).toMatchObject({
    status: 'idle',
    turn_count: 1,
    turns: [{ status: 'failed', input: 'first' }],
  });
  service.model.use({ text: 'now' });
  expect((await run('second', session_id)).status).toBe(200);
  expect(lastMessages()).toEqual([
    ['system', 'Be brief.'],
    ['user', 'second'],
  ]);
});

test('a fault after a tool was called keeps the recorded call out of the next prompt, and its usage in the transcript', async () => {
  agent = await service.createAgent({ tool: 'calculator' });
  service.model.use([
    {
      tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }],
      usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
    },
    { fault: 'reset_in_body' },
  ]);
  expectFailure(await run('first'), 'model_error');
  const { session_id } = (await service.get('/v1/sessions?limit=1')).body.data[0];
  expect((await transcript(session_id)).turns[0]).toMatchObject({
    status: 'failed',
    tool_calls: [{ tool: 'calculator', result: '2' }],
    tokens: { prompt: 5, completion: 2, total: 7 },
  });
  service.model.use({ text: 'now' });
  expect((await run('second', session_id)).status).toBe(200);
  expect(lastMessages()).toEqual([
    ['system', 'Be brief.'],
    ['user', 'second'],
  ]);
});

test.each([
  ['length', /reached its limit of tokens/],
  ['content_filter', /its content filter stopped/],
  ['constructor', /sent an empty answer\.$/],
])(
  'an empty answer with the finish reason %s fails with why, and with its usage',
  async (finish_reason, words) => {
    const usage = { prompt_tokens: 5, completion_tokens: 9, total_tokens: 14 };
    const choices = [{ finish_reason, message: { content: '' } }];
    service.model.use({ status: 200, body: { id: 'r', model: 'm', choices, usage } });
    const failed = expectFailure(await run('first'), 'model_error');
    expect(failed.error).toMatch(words);
    const { session_id } = (await service.get('/v1/sessions?limit=1')).body.data[0];
    expect((await transcript(session_id)).turns).toMatchObject([
      { status: 'failed', tokens: { prompt: 5, completion: 9, total: 14 } },
    ]);
    const { data } = (await service.get(`/v1/sessions/${session_id}/turns/1/requests`)).body;
    expect(data).toMatchObject([{ matches: true }]);
  },
);

test('a model server that is not there gives model_error, recorded as such', async () => {
  const alone = await startTestService({ text: 'Hello.' }, { MODEL_MAX_RETRIES: '0' });
  try {
    const lonely = await alone.createAgent();
    await alone.model.close();
    expect(
      expectFailure(await alone.post(`/v1/agents/${lonely}/run`, { input: 'hi' }), 'model_error')
        .error,
    ).toMatch(/could not be reached/);
    const { session_id } = (await alone.get('/v1/sessions')).body.data[0];
    expect((await alone.get(`/v1/sessions/${session_id}`)).body.data.turns).toEqual([
      expect.objectContaining({
        status: 'failed',
        error: expect.objectContaining({ code: 'model_error' }),
      }),
    ]);
  } finally {
    await alone.close();
  }
});

test('a fault that passes is retried within the run, and only the answer is recorded', async () => {
  const patient = await startTestService(
    [
      { status: 500, headers: { 'retry-after-ms': '1' } },
      { status: 429, headers: { 'retry-after-ms': '1' } },
      { text: 'at last' },
    ],
    { MODEL_MAX_RETRIES: '2' },
  );
  try {
    const { body } = await patient.post(`/v1/agents/${await patient.createAgent()}/run`, {
      input: 'hi',
    });
    expect(body.data.output).toBe('at last');
    expect(patient.model.requests.length).toBe(3);
    const { turns } = (await patient.get(`/v1/sessions/${body.data.session_id}`)).body.data;
    expect(turns).toEqual([expect.objectContaining({ status: 'completed', output: 'at last' })]);
  } finally {
    await patient.close();
  }
});

test('a run that takes longer than its limit is model_timeout, whatever its attempts may still take', async () => {
  const limited = await startTestService({ fault: 'never_answer' }, { RUN_TIMEOUT_MS: '300' });
  try {
    const { error } = expectFailure(
      await limited.post(`/v1/agents/${await limited.createAgent()}/run`, { input: 'hi' }),
      'model_timeout',
    );
    expect(error).toContain('300 ms');
    const { session_id } = (await limited.get('/v1/sessions')).body.data[0];
    expect((await limited.get(`/v1/sessions/${session_id}`)).body.data.turns[0]).toMatchObject({
      status: 'failed',
      error: { code: 'model_timeout', message: error },
    });
    // The limit is too short for a busy machine to answer within it.
    await limited.restart({ RUN_TIMEOUT_MS: '30000' });
    limited.model.use({ text: 'quick' });
    const agentAgain = (await limited.get('/v1/agents')).body.data[0].agent_id as string;
    expect(
      (await limited.post(`/v1/agents/${agentAgain}/run`, { input: 'again', session_id })).body.data
        .output,
    ).toBe('quick');
  } finally {
    await limited.close();
  }
});

test('a model that was taken out of the configuration is refused at the run, and its agent is moved to another one, session and all', async () => {
  const changing = await startTestService();
  try {
    const old = await changing.createAgent();
    const begun = await changing.post(`/v1/agents/${old}/run`, { input: 'hi' });
    const { session_id } = begun.body.data;
    await changing.restart({ MODELS_FILE: '' });
    const { error } = expectFailure(
      await changing.post(`/v1/agents/${old}/run`, { input: 'hi' }),
      'model_not_supported',
    );
    expect(error).toContain('offline-echo');
    expect((await changing.get('/v1/sessions')).body.data).toHaveLength(1);
    // What is not on offer any more keeps nobody from changing the rest, or from moving on.
    const path = `/v1/agents/${old}`;
    expect((await changing.send('PATCH', path, { name: 'Still there' })).status).toBe(200);
    expect((await changing.send('PATCH', path, { model: 'offline-echo' })).status).toBe(200);
    const next = await changing.post(`${path}/run`, { input: 'hi', session_id });
    expect([next.status, next.body.data.metadata.model]).toEqual([200, 'offline-echo']);
    const { turns } = (await changing.get(`/v1/sessions/${session_id}`)).body.data;
    expect(turns.map((turn: { agent_revision: number }) => turn.agent_revision)).toEqual([0, 2]);
  } finally {
    await changing.close();
  }
});
