/** A service that erases what is past its account's maximum, and is killed while it does. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { setHold, setRetention } from '../../shared/accounts/commands.ts';
import { expectFailure } from '../support/http/failures.ts';
import { size } from '../support/jest/size.ts';
import { runCli } from '../support/processes/cliProcess.ts';
import { asOperator, clientWith, eventually, newKey } from '../support/processes/operator.ts';
import {
  startServerProcess,
  withClockAhead,
  type ServerProcess,
} from '../support/processes/serverProcess.ts';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile, type Client } from '../support/http/service.ts';

const FORKED = { input: 'Go on.' };
const DAY_MS = 86_400_000;
const SESSIONS = size({ small: 60, full: 2_000 });
/**
 * A sweep begins a minute after a start. At the small size sooner: after what the test does first, and
 * then at once.
 */
const FIRST_SWEEP_MS = size({ small: 15_000, full: 60_000 });
const NEXT_SWEEP_MS = size({ small: 1_000, full: 60_000 });
const TIMEOUT_MS = 480_000;

let folder: string;
let data: string;
let model: ScriptedModel;
let server: ServerProcess;
let url: string;
let client: Client;

async function start({ clockAheadMs = 0, sweepMs = 60_000 } = {}): Promise<void> {
  server = startServerProcess({
    DATA_DIR: data,
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'error',
    // All are past the maximum at once.
    RETENTION_CONFIRM_PERCENT: '100',
    ...withClockAhead(clockAheadMs),
    TEST_MINUTE_MS: String(sweepMs),
  });
  url = await server.ready;
  client = apiClient(url, TEST_KEY);
}

async function end(): Promise<void> {
  server.kill('SIGKILL');
  await server.exited;
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-retention-'));
  data = join(folder, 'data');
  model = await startScriptedModel({ text: 'Done.' });
});
afterEach(async () => {
  await end();
  await model.close();
  await rm(folder, { recursive: true });
});

/** Sessions of a client, each with a turn. */
async function converse({ post }: Client, count: number): Promise<string[]> {
  const agent = { name: 'Test', instruction: 'Be brief.', model: 'scripted' };
  const { agent_id } = (await post('/v1/agents', agent)).body.data;
  const sessions: string[] = [];
  while (sessions.length < count) {
    const { body } = await post(`/v1/agents/${agent_id}/run`, { input: 'hi' });
    sessions.push(body.data.session_id as string);
  }
  return sessions;
}

const statusesOf = ({ get }: Client, sessions: readonly string[]): Promise<number[]> =>
  Promise.all(sessions.map(async (id) => (await get(`/v1/sessions/${id}`)).status));
const are = (wanted: number) => (statuses: number[]) => statuses.every((one) => one === wanted);

test(
  'what is past the maximum is erased through a kill in the middle, once, and nothing else is',
  async () => {
    await start({ clockAheadMs: -20 * DAY_MS });
    const [own] = await asOperator(data, async (operator) =>
      (await operator.readModels()).listAccounts(),
    );
    const other = await newKey(data);
    const old = await converse(client, SESSIONS);
    const held = await converse(await clientWith(url, other), 2);
    await asOperator(data, async (operator) => {
      for (const { account_id } of [own!, other]) {
        const actor = { account_id, key_id: 'operator', request_id: 'test' };
        await setRetention(operator, actor, { maximum_days: 10 });
      }
      const actor = { account_id: other.account_id, key_id: 'operator', request_id: 'test' };
      await setHold(operator, actor, { held: true, reason: 'Case 12' });
    });
    await end();

    await start({ sweepMs: FIRST_SWEEP_MS });
    const young = await converse(client, 2);
    // It shares the texts of an old one, and has one of its own.
    const forked = await client.post(`/v1/sessions/${old[0]}/fork`, { at_turn: 1 });
    const fork = forked.body.data as { session_id: string; agent_id: string };
    const goOn = () =>
      client.post(`/v1/agents/${fork.agent_id}/run`, { ...FORKED, session_id: fork.session_id });
    expect((await goOn()).status).toBe(200);
    await eventually(
      () => statusesOf(client, old),
      (statuses) => statuses.includes(410),
    );
    await end();

    await start({ sweepMs: NEXT_SWEEP_MS });
    await eventually(() => statusesOf(client, old), are(410));
    const { retention } = (
      await eventually(
        () => client.get('/health/ready'),
        ({ body }) => body.data.retention?.state === 'waiting',
      )
    ).body.data;
    expect(retention).toMatchObject({ due: held.length, held: held.length, failed: 0 });
    expect(await statusesOf(client, young)).toEqual([200, 200]);
    expect((await client.get(`/v1/sessions/${fork.session_id}`)).body.data).toMatchObject({
      forked_from: { session_id: old[0], erased: true },
      turns: [{ turn: 2, ...FORKED }],
    });
    expectFailure(await goOn(), 'origin_erased');
    expect(await statusesOf(await clientWith(url, other), held)).toEqual([200, 200]);
    const { out } = await runCli(data, 'events', 'tail', '--no-follow');
    const erased = out.split('\n').filter((line) => line.includes('"session.erased.v1"'));
    const streams = erased.map((line) => (JSON.parse(line) as { stream: string }).stream);
    expect(streams.toSorted()).toEqual(old.map((id) => `session-${id}`).toSorted());
    for (const line of erased) expect(line).toContain('"reason":"retention"');
    expect(await runCli(data, 'audit', 'verify')).toMatchObject({ code: 0 });
  },
  TIMEOUT_MS,
);
