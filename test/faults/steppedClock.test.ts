import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { steppedClock, type SteppedClock } from '../support/processes/steppedClock.ts';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile, type Client } from '../support/http/service.ts';

const HOUR_MS = 3_600_000;
const STEPS_MS = [-1_500, -HOUR_MS, 48 * HOUR_MS, -48 * HOUR_MS, 0];

let folder: string;
let clock: SteppedClock;
let model: ScriptedModel;
let server: ServerProcess;
let client: Client;
/** What happens while the model is at work on its next answer. */
let meanwhile: () => void | Promise<void>;

async function start(): Promise<void> {
  server = startServerProcess({
    DATA_DIR: join(folder, 'data'),
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'error',
    ...clock.env,
  });
  client = apiClient(await server.ready, TEST_KEY);
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-clock-'));
  clock = steppedClock(folder);
  meanwhile = () => undefined;
  model = await startScriptedModel(async ({ messages }) => {
    const now = meanwhile;
    meanwhile = () => undefined;
    await now();
    const last = messages.at(-1)!;
    return last.role === 'tool' || last.content === 'plain'
      ? { text: 'Done.' }
      : { tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }] };
  });
  await start();
});
afterEach(async () => {
  server.kill('SIGKILL');
  await server.exited;
  await model.close();
  await rm(folder, { recursive: true });
});

async function createAgent(name = 'Test'): Promise<string> {
  const agent = { name, instruction: 'Be brief.', model: 'scripted', tool: 'calculator' };
  return (await client.post('/v1/agents', agent)).body.data.agent_id as string;
}

test('a clock that is set in mid-run, back and forth and by days, loses no answer and no session', async () => {
  const agent = await createAgent();
  let session: string | undefined;
  for (const input of ['plain', 'with a tool']) {
    for (const step of STEPS_MS) {
      meanwhile = () => clock.set(step);
      const { status, body } = await client.post(`/v1/agents/${agent}/run`, {
        input,
        ...(session === undefined ? {} : { session_id: session }),
      });
      expect([status, body.data?.output]).toEqual([200, 'Done.']);
      session = body.data.session_id as string;
    }
  }
  const { body } = await client.get(`/v1/sessions/${session}?limit=100`);
  expect(body.data.turns.map((turn: any) => turn.status)).toEqual(
    Array(2 * STEPS_MS.length).fill('completed'),
  );
  const durations = JSON.stringify(body.data).match(/"duration_ms":[^,}]+/g)!;
  expect(durations).toHaveLength(STEPS_MS.length);
  // Nothing took as long as any step of the clock.
  for (const duration of durations) expect(duration).toMatch(/^"duration_ms":\d{1,5}$/);
});

test('turns that a crash left open are closed by a start whose clock is an hour behind', async () => {
  const agent = await createAgent();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  meanwhile = () => {
    begin();
    return new Promise(() => undefined);
  };
  client.post(`/v1/agents/${agent}/run`, { input: 'plain' }).catch(() => undefined);
  await begun;
  server.kill('SIGKILL');
  await server.exited;
  clock.set(-HOUR_MS);
  await start();
  const sessions = (await client.get('/v1/sessions?limit=10')).body.data;
  expect(sessions).toMatchObject([{ status: 'idle' }]);
  const again = { input: 'plain', session_id: sessions[0].session_id };
  expect((await client.post(`/v1/agents/${agent}/run`, again)).status).toBe(200);
});

test('a list is complete and in the order of creation, and no page skips or repeats, though the clock was put back while it was read', async () => {
  const made: string[] = [];
  const make = async (count: number): Promise<void> => {
    for (; count > 0; count -= 1) made.push(await createAgent(`Agent ${made.length}`));
  };
  await make(5);
  const first = await client.get('/v1/agents?limit=4');
  clock.set(-HOUR_MS);
  await make(5);
  clock.set(24 * HOUR_MS);
  await make(3);
  clock.set(-24 * HOUR_MS);
  await make(3);
  const ids = (reply: typeof first): string[] =>
    reply.body.data.map(({ agent_id }: { agent_id: string }) => agent_id);
  const paged = ids(first);
  for (let page = first; page.headers.get('link') !== null; paged.push(...ids(page)))
    page = await client.get(`/v1/agents?limit=4&after=${paged.at(-1)}`);
  expect(paged).toEqual(made);
  expect(ids(await client.get('/v1/agents'))).toEqual(made);
  await eventually(
    () => client.get('/health/ready'),
    ({ body }) => body.data?.status === 'ready',
  );
});

const YEAR_10001_MS = Date.UTC(10_001, 0) - Date.now();
const BEFORE_1970_MS = -Date.now() - 48 * HOUR_MS;

describe.each([
  ['of the year 10001', YEAR_10001_MS],
  ['before 1970', BEFORE_1970_MS],
])('a clock %s', (_what, wrong) => {
  const isReady = () =>
    eventually(
      () => client.get('/health/ready'),
      ({ body }) => body.data?.status === 'ready',
    );

  test('records nothing, says so, and leaves nothing parked once it is right', async () => {
    const agent = await createAgent();
    const path = `/v1/agents/${agent}/run`;
    const { session_id } = (await client.post(path, { input: 'plain' })).body.data;
    clock.set(wrong);
    const refused = { code: 'store_unavailable', error: expect.stringContaining('clock') };
    for (const [to, body] of [
      ['/v1/agents', { name: 'Late', instruction: 'Be brief.', model: 'scripted' }],
      [path, { input: 'plain', session_id }],
      [path, { input: 'plain' }],
    ] as const)
      expect(await client.post(to, body)).toMatchObject({ status: 503, body: refused });
    expect(await client.get('/health/ready')).toMatchObject({ status: 503, body: refused });
    expect((await client.get(`/v1/agents/${agent}`)).status).toBe(200);

    clock.set(0);
    expect((await isReady()).body.data.projection.parked_streams).toEqual([]);
    expect((await client.post(path, { input: 'plain', session_id })).status).toBe(200);
    const next = await createAgent('Next');
    const { data } = (await client.get('/v1/agents')).body;
    expect(data.map(({ agent_id }: { agent_id: string }) => agent_id)).toEqual([agent, next]);
    // An id contains its time: one of the year 10001 would come after all later ones.
    expect(next.slice(0, 8)).toBe(agent.slice(0, 8));
  });

  test('in mid-run leaves a turn that is closed once it is right', async () => {
    const agent = await createAgent();
    const path = `/v1/agents/${agent}/run`;
    const { session_id } = (await client.post(path, { input: 'plain' })).body.data;
    meanwhile = () => clock.set(wrong);
    const interrupted = client.post(path, { input: 'plain', session_id });
    await eventually(
      () => client.get('/health/ready'),
      ({ status }) => status === 503,
    );
    clock.set(0);
    await interrupted;
    await isReady();
    await eventually(
      () => client.post(path, { input: 'plain', session_id }),
      ({ status }) => status === 200,
    );
  });
});
