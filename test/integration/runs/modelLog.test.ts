import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { apiClient, TEST_KEY, writeModelsFile, type Client } from '../../support/http/service.ts';
import {
  startScriptedModel,
  type ScriptedModel,
  type Step,
} from '../../support/fakes/scriptedModel.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';

const RUNS = 100;

let folder: string;
let model: ScriptedModel;
let server: ServerProcess;
let client: Client;
let agent: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-model-log-'));
  model = await startScriptedModel({ text: 'Hello.' });
  server = startServerProcess({
    DATA_DIR: join(folder, 'data'),
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    MODEL_MAX_RETRIES: '2',
    SHUTDOWN_GRACE_MS: '1',
  });
  client = apiClient(await server.ready, TEST_KEY);
  const settings = { name: 'Test', instruction: 'Be brief.', model: 'scripted' };
  agent = (await client.post('/v1/agents', settings)).body.data.agent_id as string;
  // What a new service says of itself stands before the lines that are looked at.
  while (!server.errors().includes('A transparency log was started')) await sleep(10);
});
afterAll(async () => {
  server.kill('SIGTERM');
  await server.exited;
  await model.close();
  await rm(folder, { recursive: true, force: true });
});

/** What the log gains while the runs fail, line by line. */
async function loggedWhile(step: Step, runs: number): Promise<string[]> {
  const before = server.errors().length;
  model.use(step);
  const one = () => client.post(`/v1/agents/${agent}/run`, { input: 'my private words' });
  const replies = await Promise.all(Array.from({ length: runs }, one));
  expect(replies.every(({ status }) => status >= 502)).toBe(true);
  const lines = (): string[] =>
    server
      .errors()
      .slice(before)
      .split('\n')
      .slice(0, -1)
      // A hundred first runs at once are a long step of a cold process.
      .filter((line) => !line.includes('a step of the event loop took long'));
  // An answer may come sooner than what was written to the log before it.
  while (lines().length < runs) await sleep(10);
  return lines();
}

test('runs that fail are a short line each: who, where, and nothing that the provider said', async () => {
  const message = `No.\n${'Line by line. '.repeat(10_000)} Bearer abc.def`;
  const lines = await loggedWhile({ status: 400, body: { error: { message } } }, RUNS);
  expect(lines.length).toBe(RUNS);
  for (const line of lines) {
    expect(line.length).toBeLessThan(700);
    expect(line).not.toMatch(/"stack"|private words/);
    expect(JSON.parse(line)).toEqual({
      level: 'warn',
      time: expect.any(String),
      request_id: expect.any(String),
      session_id: expect.stringMatching(/^session_/),
      turn: 1,
      provider: 'script',
      code: 'model_error',
      reason: 'The model provider refused the request (400).',
      cause: '400',
      msg: 'a turn ended without an answer',
    });
  }
});

test.each<[string, Step, string]>([
  ['is asked three times', { status: 500, headers: { 'retry-after-ms': '1' } }, 'model_error'],
  ['is overloaded', { status: 429, headers: { 'retry-after': '60' } }, 'model_overloaded'],
  ['hangs up', { fault: 'reset_in_body' }, 'model_error'],
  ['calls tools for ever', { tool_calls: [{ name: 'f', arguments: '{}' }] }, 'tool_error'],
])('a run whose provider %s is one line', async (_, step, code) => {
  const lines = await loggedWhile(step, 1);
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ level: 'warn', code, msg: 'a turn ended without an answer' }),
  ]);
});

/** The last one: the server ends. */
test('a run that a shut-down cuts off is one line', async () => {
  model.use({ fault: 'never_answer' });
  const before = model.requests.length;
  const reply = client.post(`/v1/agents/${agent}/run`, { input: 'go' });
  await model.received(before + 1);
  server.kill('SIGTERM');
  const { status, body } = await reply;
  expect([status, body.code]).toEqual([503, 'turn_interrupted']);
  await server.exited;
  const lines = server.errors().split('\n');
  expect(lines.filter((line) => line.includes(body.request_id!)).length).toBe(1);
});
