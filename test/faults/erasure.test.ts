import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { filesHolding, filesWith, newMarker } from '../support/stores/erasure/holding.ts';
import { wrappedKeysOf } from '../support/stores/erasure/wrappedKeys.ts';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile, type Client } from '../support/http/service.ts';
import { size } from '../support/jest/size.ts';
import { eventually } from '../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';

const ROUNDS = size({ small: 6, full: 60 });
/** Others that stay, whose rows share pages with those that go. */
const NEIGHBOURS = 4;
const TURNS = size({ small: 3, full: 20 });
/** An erasure is over by then, or not yet begun at 0. */
const LATEST_KILL_MS = 60;

let folder: string;
let data: string;
let model: ScriptedModel;
let server: ServerProcess;
let client: Client;

async function start(): Promise<void> {
  server = startServerProcess({
    DATA_DIR: data,
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'error',
  });
  client = apiClient(await server.ready, TEST_KEY);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-erasure-'));
  data = join(folder, 'data');
  model = await startScriptedModel(({ messages }) => ({ text: `re: ${messages.at(-1)!.content}` }));
  await start();
});
afterAll(async () => {
  server.kill('SIGKILL');
  await server.exited;
  await model.close();
  await rm(folder, { recursive: true, force: true });
});

async function converse(agent: string, text: string): Promise<string> {
  let session_id: string | undefined;
  for (let turn = 0; turn < TURNS; turn += 1) {
    const input = `${text} ${'x'.repeat(Math.floor(Math.random() * 3_000))} ${text}`;
    const { body } = await client.post(`/v1/agents/${agent}/run`, {
      input,
      ...(session_id && { session_id }),
    });
    session_id = body.data.session_id as string;
  }
  return session_id!;
}

test(`after each of ${ROUNDS} erasures that a kill -9 cut off, the session is whole or gone, and gone when it is erased again`, async () => {
  const agent = (
    await client.post('/v1/agents', { name: 'A', instruction: 'Repeat.', model: 'scripted' })
  ).body.data.agent_id as string;
  const kept: string[] = [];
  const seen = { whole: 0, gone: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    const marker = newMarker();
    for (let index = 0; index < NEIGHBOURS; index += 1) kept.push(await converse(agent, 'stays'));
    const session = await converse(agent, marker);
    const path = `/v1/sessions/${session}`;
    const keys = await wrappedKeysOf(data, session);
    expect(filesWith(data, keys)).not.toEqual([]);
    expect(filesHolding(data, marker)).toEqual([]);

    const cut = client.send('DELETE', path, '').catch(() => undefined);
    await sleep((LATEST_KILL_MS * round) / ROUNDS);
    server.kill('SIGKILL');
    await Promise.all([cut, server.exited]);
    await start();

    // What was begun is gone on with, a moment after the start.
    await sleep(3_000);
    const { status, body } = await client.get(path);
    if (status === 200) expect(body.data.turns).toHaveLength(TURNS);
    else expect([status, body.code]).toEqual([410, 'session_erased']);
    seen[status === 200 ? 'whole' : 'gone'] += 1;
    if (status === 410) {
      const held = await eventually(
        async () => filesWith(data, keys),
        (files) => files.length === 0,
      );
      expect([round, held]).toEqual([round, []]);
    }

    expect((await client.send('DELETE', path, '')).status).toBe(200);
    expect([round, filesWith(data, keys)]).toEqual([round, []]);
  }
  for (const session of kept)
    expect((await client.get(`/v1/sessions/${session}`)).status).toBe(200);
  expect(seen.whole + seen.gone).toBe(ROUNDS);
}, 900_000);

test('many sessions of all sizes leave nothing in pages that they shared with others', async () => {
  const agent = (
    await client.post('/v1/agents', { name: 'B', instruction: 'Repeat.', model: 'scripted' })
  ).body.data.agent_id as string;
  const sessions = await Promise.all(
    Array.from({ length: size({ small: 30, full: 300 }) }, async () => {
      const session = await converse(agent, 'goes');
      await converse(agent, 'stays');
      return session;
    }),
  );
  const keys: Buffer[] = [];
  for (const session of sessions) keys.push(...(await wrappedKeysOf(data, session)));
  expect(filesWith(data, keys)).not.toEqual([]);
  await Promise.all(
    sessions.map(async (session) =>
      expect((await client.send('DELETE', `/v1/sessions/${session}`, '')).status).toBe(200),
    ),
  );
  const held = await eventually(
    async () => filesWith(data, keys),
    (files) => files.length === 0,
  );
  expect(held).toEqual([]);
}, 300_000);
