import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import { startScriptedModel, type ScriptedModel } from '../../support/fakes/scriptedModel.ts';
import {
  startTestService,
  type Client,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import {
  asOperator,
  clientWith,
  eventually,
  issueTo,
  newKey,
} from '../../support/processes/operator.ts';

const PRICE = { input_per_million: '2.5', output_per_million: '10' };

let folder: string;
let model: ScriptedModel;
let service: TestService;
let other: Client;
let agents: string[];
let session: string;
let firstKeyId: string;

const TODAY = { from: '', to: '' };
const usage = (query: string, client: Client = service): Promise<Reply> =>
  client.get(`/v1/usage?from=${TODAY.from}&to=${TODAY.to}${query}`);
const entries = async (query: string): Promise<Record<string, any>[]> => {
  const { status, body } = await usage(query);
  expect({ status, error: body.error }).toEqual({ status: 200, error: undefined });
  return body.data as Record<string, any>[];
};
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-usage-'));
  const usageOf = (prompt_tokens: number, completion_tokens: number) => ({
    usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
  });
  model = await startScriptedModel(({ model: asked, messages }) => {
    const last = messages.at(-1)!;
    if (last.role === 'tool') return { text: 'It is 2.', ...usageOf(40, 4) };
    if (last.content === 'never') return { fault: 'never_answer' };
    if (last.content === 'fail') return { status: 400 };
    if (last.content === 'fall back' && asked === 'dear-upstream') return { status: 503 };
    if (last.content === 'use the tool')
      return {
        tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }],
        ...usageOf(30, 3),
      };
    return { text: 'Hello.', ...usageOf(10, 1) };
  });
  const of = (id: string, more: object) => ({
    id,
    provider: 'script',
    upstream_model: `${id}-upstream`,
    context_window: 1_000_000,
    ...more,
  });
  const models = [of('dear', { price: PRICE, fallbacks: ['spare'] }), of('spare', {})];
  const providers = { script: { base_url: model.baseUrl } };
  await writeFile(join(folder, 'models.json'), JSON.stringify({ providers, models }));
  service = await startTestService(undefined, {
    MODELS_FILE: join(folder, 'models.json'),
    MODEL_MAX_RETRIES: '0',
  });
  const began = Date.now();
  agents = [];
  for (const name of ['One', 'Two'])
    agents.push(await service.createAgent({ name, model: 'dear', tool: 'calculator' }));
  const { body } = await service.get('/v1/models');
  expect(body.data[0].price).toEqual({ ...PRICE, currency: 'USD' });
  const run = (agent: number, input: string, client: Client = service): Promise<Reply> =>
    client.post(`/v1/agents/${agents[agent]}/run`, { input });
  session = (await run(0, 'hi')).body.data.session_id as string;
  await run(0, 'use the tool');
  await run(0, 'fail');
  await run(1, 'fall back');
  const { account_id, key_id } = await firstKey();
  firstKeyId = key_id;
  other = await clientWith(
    service.url,
    await asOperator(service.folder, (operator) => issueTo(operator, { account: account_id })),
  );
  const cut = run(1, 'never', other);
  const running = await eventually(
    () => service.get('/v1/sessions?status=running'),
    ({ body: { data } }) => data.length === 1,
  );
  await service.post(`/v1/sessions/${running.body.data[0].session_id}/cancel`, {});
  await cut;
  await service.send('DELETE', `/v1/sessions/${session}`, '');
  // A run may have ended on the day after.
  [TODAY.from, TODAY.to] = [dayOf(began), dayOf(Date.now())];
});
afterAll(async () => {
  await service.close();
  await model.close();
  await rm(folder, { recursive: true });
});

/** The account of the key that the suite's own client has. */
async function firstKey(): Promise<{ account_id: string; key_id: string }> {
  const { body } = await service.post(`/v1/agents/${agents[0]}/run`, { input: 'hi' });
  const path = `/v1/sessions/${body.data.session_id}/events`;
  return (await service.get(path)).body.data[0].metadata as { account_id: string; key_id: string };
}

const TOTAL = {
  runs: 6,
  completed: 4,
  failed: 1,
  interrupted: 1,
  tokens: { prompt: 100, completion: 10, total: 110 },
  model_calls: 5,
  tool_calls: 1,
  // 90 and 9 of the model that has a price.
  cost: { amount: '0.000315', currency: 'USD' },
  unpriced_tokens: 11,
};

describe('usage', () => {
  test('is the sum of all runs that ended, those of an erased session too', async () => {
    expectFailure(await service.get(`/v1/sessions/${session}`), 'session_erased');
    expect(await entries('')).toEqual([TOTAL]);
  });

  test("counts a fallback's tokens for the model that answered, which has no price here", async () => {
    const [dear, spare] = await entries('&by=model');
    expect(dear).toMatchObject({ model: 'dear', runs: 5, cost: TOTAL.cost, unpriced_tokens: 0 });
    expect(spare).toEqual({
      model: 'spare',
      runs: 1,
      completed: 1,
      failed: 0,
      interrupted: 0,
      tokens: { prompt: 10, completion: 1, total: 11 },
      model_calls: 1,
      tool_calls: 0,
      cost: null,
      unpriced_tokens: 11,
    });
  });

  test('is told apart by agent and by key: a cancelled run is of the key that began it', async () => {
    expect(await entries('&by=agent')).toMatchObject([
      { agent_id: agents[0], runs: 4, tool_calls: 1 },
      { agent_id: agents[1], runs: 2, completed: 1 },
    ]);
    const keys = await entries('&by=key');
    expect(keys).toHaveLength(2);
    expect(keys.find((entry) => entry['key_id'] === firstKeyId)).toMatchObject({ interrupted: 0 });
    expect(keys.find((entry) => entry['key_id'] !== firstKeyId)).toMatchObject({
      runs: 1,
      interrupted: 1,
    });
  });

  test('is told apart by several at once, in their order and in no other', async () => {
    const found = await entries('&by=code,kind,day');
    expect(found.map(({ day, kind, code }) => [day >= TODAY.from, kind, code])).toEqual([
      [true, 'run', null],
      [true, 'run', 'cancelled'],
      [true, 'run', 'model_error'],
    ]);
    expect(Object.keys(found[0]!).slice(0, 3)).toEqual(['day', 'kind', 'code']);
  });

  test('comes in pages, which are all of it together', async () => {
    const all = await entries('&by=agent,model,code');
    const pages: unknown[] = [];
    let path: string | undefined =
      `/v1/usage?from=${TODAY.from}&to=${TODAY.to}&by=agent,model,code&limit=1`;
    while (path) {
      const { headers, body }: Reply = await service.get(path);
      expect(body.data).toHaveLength(1);
      pages.push(...(body.data as unknown[]));
      path = /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];
    }
    expect(pages).toEqual(all);
    expect(all.length).toBeGreaterThan(3);
  });

  test('is of the days that are asked for', async () => {
    const { body } = await service.get('/v1/usage?from=2020-01-01&to=2020-12-31&by=day');
    expect(body.data).toEqual([]);
  });

  test('is limited to an agent, a model, a key and a kind, each alone and together', async () => {
    const [byTwo] = (await entries('&by=agent')).filter(({ agent_id }) => agent_id === agents[1]);
    const { agent_id: _agent, ...ofTwo } = byTwo!;
    expect(await entries(`&agent_id=${agents[1]}`)).toEqual([ofTwo]);
    const [byKey] = await entries(`&by=key&key_id=${firstKeyId}`);
    expect(byKey).toMatchObject({ key_id: firstKeyId, runs: 5 });
    expect(await entries(`&by=key,model&key_id=${firstKeyId}&model=spare`)).toMatchObject([
      { key_id: firstKeyId, model: 'spare', runs: 1, unpriced_tokens: 11 },
    ]);
    expect(await entries('&kind=run')).toEqual([TOTAL]);
    expect(await entries('&kind=replay')).toEqual([]);
    expect(await entries(`&by=day&agent_id=${agents[0]}&model=spare`)).toEqual([]);
  });

  test("is an account's own, and needs its scope", async () => {
    const stranger = await clientWith(service.url, await newKey(service.folder));
    expect((await usage('&by=key', stranger)).body.data).toEqual([]);
    const writer = await clientWith(
      service.url,
      await newKey(service.folder, { scopes: ['agents:run'] }),
    );
    expectFailure(await usage('', writer), 'forbidden');
  });

  test('is that of the days in UTC, where times name them', async () => {
    const days = await usage('&by=day');
    const [from, to] = [`${TODAY.from}T01:00:00%2B01:00`, `${TODAY.to}T18:59:59-05:00`];
    const byTimes = await service.get(`/v1/usage?from=${from}&to=${to}&by=day`);
    expect(days.body.data.length).toBeGreaterThan(0);
    expect(byTimes.body.data).toEqual(days.body.data);
    const before = `${TODAY.from}T00:59:59%2B01:00`;
    const none = await service.get(`/v1/usage?from=2000-01-01&to=${before}&by=day`);
    expect(none.body.data).toEqual([]);
  });

  test.each([
    ['none', 'rubbish'],
    ['of a list by two', 'WyJhIiwiYiJd'],
  ])('a cursor that is %s is refused', async (_what, after) => {
    const query = `from=2026-01-01&to=2026-01-01&by=day&after=${after}`;
    const reply = await service.get(`/v1/usage?${query}`);
    const { details } = expectFailure(reply, 'position_unknown');
    expect(details).toEqual({
      after: { message: expect.stringContaining('Link'), path: 'query/after' },
    });
  });

  test.each([
    ['from=2026-01-01', 'to', 'is required'],
    ['from=2026-1-1&to=2026-03-01', 'from', 'date'],
    ['from=2026-01-01&to=2026-02-30', 'to', 'date'],
    ['from=2026-12-31&to=2026-01-01', 'to', 'must not be before "from"'],
    ['from=2026-01-01&to=2026-01-01&by=month', 'by', 'day, agent, model'],
    ['from=2026-01-01&to=2026-01-01&kind=both', 'kind', 'run'],
    ['from=2026-01-01&to=2026-01-01&agent_id=One', 'agent_id', 'agent_'],
    ['from=2026-01-01&to=2026-01-01&limit=0', 'limit', '>= 1'],
    ['from=2026-01-01&to=2026-01-01&account=a', 'account', 'known'],
  ])('%s is refused, and %s is named', async (query, field, message) => {
    const { details } = expectFailure(await service.get(`/v1/usage?${query}`), 'invalid_request');
    expect(Object.keys(details ?? {})).toEqual([field]);
    expect(details?.[field]).toEqual({
      message: expect.stringContaining(message),
      path: `query/${field}`,
    });
  });
});
