import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { canonicalJson } from '../../../shared/eventlog/canonicalJson.ts';
import { sha256 } from '../../../shared/eventlog/hashChain.ts';
import { expectFailure } from '../../support/http/failures.ts';
import {
  startScriptedModel,
  type ScriptedModel,
  type Script,
} from '../../support/fakes/scriptedModel.ts';
import { closeRebuilt } from '../../support/http/rebuiltRequests.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

const NAMES = ['first', 'small', 'second', 'third'] as const;
type Name = (typeof NAMES)[number];

let folder: string;
let servers: Record<Name, ScriptedModel>;
let service: TestService;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-fallbacks-'));
  const started = await Promise.all(NAMES.map(() => startScriptedModel({ text: 'Hello.' })));
  servers = Object.fromEntries(NAMES.map((name, at) => [name, started[at]!])) as typeof servers;
  const model = (id: Name, more: object = {}) => ({
    id,
    provider: id,
    upstream_model: `${id}-upstream`,
    context_window: 1_000_000,
    ...more,
  });
  const models = [
    model('first', { max_output_tokens: 500, fallbacks: ['small', 'second', 'third'] }),
    model('small', { context_window: 300 }),
    model('second'),
    model('third', { max_output_tokens: 70 }),
  ];
  const providers = Object.fromEntries(
    NAMES.map((name) => [name, { base_url: servers[name].baseUrl }]),
  );
  await writeFile(join(folder, 'models.json'), JSON.stringify({ providers, models }));
});
afterAll(async () => {
  await Promise.all(Object.values(servers).map((server) => server.close()));
  await rm(folder, { recursive: true });
});

const OPEN_MS = 1_500;
beforeEach(async () => {
  for (const server of Object.values(servers)) server.use({ text: 'Hello.' });
  service = await startTestService(undefined, {
    MODELS_FILE: join(folder, 'models.json'),
    MODEL_MAX_RETRIES: '0',
    MODEL_ATTEMPT_TIMEOUT_MS: '2000',
    MODEL_CIRCUIT_FAILURES: '3',
    MODEL_CIRCUIT_OPEN_MS: String(OPEN_MS),
  });
});
afterEach(() => closeRebuilt(service));

const use = (script: Partial<Record<Name, Script>>) => {
  for (const [name, step] of Object.entries(script)) servers[name as Name].use(step);
};
const agentOf = (changes: object = {}) => service.createAgent({ model: 'first', ...changes });
const run = (agent: string, input = 'many words '.repeat(200)) =>
  service.post(`/v1/agents/${agent}/run`, { input });
const seen = () => NAMES.map((name) => servers[name].requests.length);
/** How many requests each server gets meanwhile. */
async function askedDuring<T>(act: () => Promise<T>): Promise<[T, number[]]> {
  const before = seen();
  const outcome = await act();
  return [outcome, seen().map((count, at) => count - before[at]!)];
}
async function lastEvent() {
  const { session_id } = (await service.get('/v1/sessions?limit=1')).body.data[0];
  return (await service.get(`/v1/sessions/${session_id}/events`)).body.data.at(-1).data;
}
const health = async () => (await service.get('/health/ready')).body.data;

describe('a model in trouble', () => {
  test.each<[string, Script]>([
    ['answers 500', { status: 500 }],
    ['answers 429', { status: 429 }],
    ['answers 503', { status: 503 }],
    ['resets the connection', { fault: 'reset_before_answer' }],
    ['says nothing', { fault: 'never_answer' }],
    ['breaks off in its answer', { fault: 'reset_in_body' }],
  ])(
    'that %s leaves the answer to the next one whose context holds the prompt',
    async (_, step) => {
      use({ first: step, second: { text: 'Second here.', model: 'second-2026' } });
      const [{ body }, asked] = await askedDuring(async () => run(await agentOf()));
      expect(body.data).toMatchObject({
        output: 'Second here.',
        metadata: { model: 'second-2026' },
      });
      expect(asked).toEqual([1, 0, 1, 0]);
    },
  );

  test('leaves a record from which the request that was sent can be built', async () => {
    use({ first: { status: 500 }, second: { status: 500 } });
    await run(await agentOf({ temperature: 1, max_output_tokens: 90 }));
    const { calls, model } = await lastEvent();
    expect(model).toBe('third-upstream-scripted');
    expect(calls).toMatchObject([
      {
        model: 'third-upstream-scripted',
        fallback: { model: 'third', upstream_model: 'third-upstream', max_completion_tokens: 70 },
      },
    ]);
    const sent = servers.third.requests.at(-1)!;
    expect(sent).toMatchObject({
      model: 'third-upstream',
      max_completion_tokens: 70,
      temperature: 1,
    });
    expect(calls[0].request_sha256.text).toBe(sha256(canonicalJson(sent)));
  });

  test('sends a fallback without a limit none of its own', async () => {
    use({ first: { status: 500 } });
    await run(await agentOf());
    expect(servers.second.requests.at(-1)).not.toHaveProperty('max_completion_tokens');
  });

  test.each([400, 401, 404])('does not answer %i: no other is asked', async (status) => {
    use({ first: { status } });
    const [reply, asked] = await askedDuring(async () => run(await agentOf()));
    expectFailure(reply, 'model_error');
    expect(asked).toEqual([1, 0, 0, 0]);
  });

  test('whose fallbacks are too says what it failed with itself', async () => {
    use({
      first: { status: 429, headers: { 'retry-after': '7' } },
      second: { status: 400 },
      third: { status: 500 },
    });
    const [reply, asked] = await askedDuring(async () => run(await agentOf()));
    expectFailure(reply, 'model_overloaded');
    expect(reply.headers.get('retry-after')).toBe('7');
    expect(asked).toEqual([1, 0, 1, 1]);
  });

  test('that has answered with a tool call is not replaced any more', async () => {
    const call = { tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }] };
    use({ first: [call, { status: 500 }] });
    const agent = await agentOf({ tool: 'calculator' });
    const [reply, asked] = await askedDuring(() => run(agent));
    expectFailure(reply, 'model_error');
    expect(asked).toEqual([2, 0, 0, 0]);
  });

  test('is not asked again in a turn that another one began', async () => {
    const call = { tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }] };
    use({ first: [{ status: 500 }, { text: 'Back.' }], second: [call, { text: 'Two.' }] });
    const agent = await agentOf({ tool: 'calculator' });
    const [{ body }, asked] = await askedDuring(() => run(agent));
    expect(body.data.output).toBe('Two.');
    expect(asked).toEqual([1, 0, 2, 0]);
  });
});

describe('the circuit to a provider', () => {
  const alone = (changes: object = {}) => agentOf({ model: 'third', ...changes });
  async function open(agent: string): Promise<void> {
    use({ third: { status: 500 } });
    for (let calls = 0; calls < 3; calls += 1) expectFailure(await run(agent), 'model_error');
  }

  test('opens after so many failures in a row, and closes when one call is answered', async () => {
    const agent = await alone();
    await open(agent);
    const [refused, asked] = await askedDuring(() => run(agent));
    expectFailure(refused, 'model_overloaded');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(asked).toEqual([0, 0, 0, 0]);
    expect(await health()).toMatchObject({ status: 'degraded', open_circuits: ['third'] });

    use({ third: { text: 'Back.' } });
    await new Promise((resolve) => setTimeout(resolve, OPEN_MS));
    expect((await run(agent)).body.data.output).toBe('Back.');
    expect(await health()).toMatchObject({ status: 'ready' });
    expect(await health()).not.toHaveProperty('open_circuits');
  });

  test('leaves the answer to a fallback at once, and other providers alone', async () => {
    use({ first: { status: 500 } });
    const agent = await agentOf();
    for (let calls = 0; calls < 3; calls += 1) expect((await run(agent)).status).toBe(200);
    const [{ status }, asked] = await askedDuring(() => run(agent));
    expect([status, asked]).toEqual([200, [0, 0, 1, 0]]);
    expect((await health()).open_circuits).toEqual(['first']);
  });

  test('stays closed whatever requests are refused, and counts anew after them', async () => {
    const agent = await alone();
    const script = [500, 500, 400, 500, 500, 422, 500].map((status) => ({ status }));
    use({ third: [...script, { text: 'Still here.' }] });
    const [, asked] = await askedDuring(async () => {
      for (const _ of script) expectFailure(await run(agent), 'model_error');
    });
    expect(asked).toEqual([0, 0, 0, script.length]);
    expect((await run(agent)).body.data.output).toBe('Still here.');
  });
});
