import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile } from '../support/http/service.ts';
import { size } from '../support/jest/size.ts';
import { freePort } from '../support/processes/freePort.ts';
import { eventually } from '../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { testStoreEnv } from '../support/stores/testStore.ts';
import { verified, type Received } from '../support/servers/webhookReceiver.ts';

const KILLS = size({ small: 5, full: 20 });
const CLIENTS = 6;
const SESSION_TURNS = 8;
const RECEIVER = fileURLToPath(
  new URL('../support/servers/webhookReceiverProcess.ts', import.meta.url),
);

let folder: string;
let model: ScriptedModel;
let env: Record<string, string>;
let port: number;
let file: string;
let receiver: ChildProcess | undefined;
let server: ServerProcess | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-webhooks-'));
  model = await startScriptedModel(({ messages }) => ({
    text: `re: ${messages.at(-1)!.content}`,
    delay_ms: Math.random() * 30,
  }));
  port = await freePort();
  file = join(folder, 'received.jsonl');
  await writeFile(file, '');
  env = {
    DATA_DIR: join(folder, 'data'),
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'error',
    WEBHOOKS_ALLOW_PRIVATE: 'true',
    ...testStoreEnv(),
  };
});
afterAll(async () => {
  receiver?.kill('SIGKILL');
  server?.kill('SIGKILL');
  await server?.exited;
  await model.close();
  await rm(folder, { recursive: true, force: true });
});

const startReceiver = (): void =>
  void (receiver = spawn(process.execPath, [RECEIVER, String(port), file], { stdio: 'ignore' }));

async function killReceiver(): Promise<void> {
  const exited = once(receiver!, 'exit');
  receiver!.kill('SIGKILL');
  await exited;
}

/** All that the receiver has written, but for a line that a kill cut off. */
async function received(): Promise<Received[]> {
  const lines = (await readFile(file, 'utf8')).split('\n').slice(0, -1);
  return lines.flatMap((line) => {
    // What was cut off has the next one behind it in its line.
    const start = line.lastIndexOf('{"headers":');
    const message = JSON.parse(line.slice(start)) as Received;
    return [{ ...message, body: JSON.parse(message.text) as Received['body'] }];
  });
}

const load = { url: undefined as string | undefined, over: false, sessions: new Set<string>() };

/** Converses until the load is over; what a kill cuts off is lost to it. */
async function converse(agent: string): Promise<void> {
  let session: string | undefined;
  for (let call = 1; !load.over; call += 1) {
    if (load.url === undefined) {
      await sleep(5);
      continue;
    }
    const input = { input: `call ${call}`, ...(session !== undefined && { session_id: session }) };
    const reply = await apiClient(load.url, TEST_KEY)
      .post(`/v1/agents/${agent}/run`, input)
      .catch(() => undefined);
    if (reply?.status !== 200) {
      session = undefined;
      continue;
    }
    session = call % SESSION_TURNS === 0 ? undefined : (reply.body.data.session_id as string);
    load.sessions.add(reply.body.data.session_id as string);
    await sleep(Math.random() * 40);
  }
}

async function startServer(): Promise<void> {
  server = startServerProcess(env);
  load.url = await server.ready;
}

/** Of all sessions, killed runs' too: how many events each stream has. */
async function streams(): Promise<Map<string, number>> {
  const { get } = apiClient(load.url!, TEST_KEY);
  const known = new Map<string, number>();
  let after = '';
  for (;;) {
    const page = (await get(`/v1/sessions?limit=1000${after}`)).body.data as {
      session_id: string;
    }[];
    for (const { session_id } of page) {
      const events = (await get(`/v1/sessions/${session_id}/events?limit=1000`)).body.data;
      known.set(session_id, (events as unknown[]).length);
    }
    if (page.length < 1_000) return known;
    after = `&after=${page.at(-1)!.session_id}`;
  }
}

/** By subject, the revisions in the order in which they came first. */
function firstSeen(messages: readonly Received[]): Map<string, number[]> {
  const seen = new Map<string, number[]>();
  for (const { body } of messages) {
    const revisions = seen.get(body.subject) ?? [];
    seen.set(body.subject, revisions);
    const revision = body.streamrevision;
    if (!revisions.includes(revision)) revisions.push(revision);
  }
  return seen;
}

test(
  'a receiver that is killed again and again, and the service once, misses nothing and sees each session in order',
  async () => {
    await startServer();
    startReceiver();
    const { post } = apiClient(load.url!, TEST_KEY);
    const created = await post('/v1/webhooks', { url: `http://127.0.0.1:${port}/hook` });
    const { webhook_id, secret } = created.body.data;
    const agent = (
      await post('/v1/agents', { name: 'A', instruction: 'Repeat.', model: 'scripted' })
    ).body.data.agent_id as string;
    const clients = Array.from({ length: CLIENTS }, () => converse(agent));

    for (let kill = 0; kill < KILLS; kill += 1) {
      await sleep(300 + Math.random() * 900);
      if (kill === Math.floor(KILLS / 2)) {
        load.url = undefined;
        server!.kill('SIGKILL');
        await server!.exited;
        await startServer();
      }
      await killReceiver();
      await sleep(Math.random() * 400);
      startReceiver();
    }
    await sleep(500);
    load.over = true;
    await Promise.all(clients);

    const ended = performance.now();
    const expected = await streams();
    expect([...load.sessions].filter((session) => !expected.has(session))).toEqual([]);
    const total = [...expected.values()].reduce((sum, count) => sum + count, 0);
    await eventually(
      async () => firstSeen(await received()),
      (seen) => [...expected].every(([session, count]) => seen.get(session)?.length === count),
    );
    const drainMs = Math.round(performance.now() - ended);
    const messages = await received();
    for (const [subject, revisions] of firstSeen(messages))
      expect([subject, revisions]).toEqual([subject, revisions.map((_, index) => index)]);
    for (const message of messages) expect(() => verified(message, secret)).not.toThrow();
    // The receiver keeps a message before it acknowledges it.
    await eventually(
      async () => (await apiClient(load.url!, TEST_KEY).get(`/v1/webhooks/${webhook_id}`)).body,
      ({ data }) => data.state === 'active',
    );
    // The kills met a webhook at work: fewer events would be no test.
    expect(total).toBeGreaterThan(KILLS * 5);
    process.stdout.write(
      `webhooks: ${KILLS} kills, ${expected.size} sessions, ${total} events, ${messages.length} messages, the last ${drainMs} ms after the load\n`,
    );
  },
  size({ small: 120_000, full: 300_000 }),
);
