import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ChatRequest } from '../../shared/sessions/turns/chat.ts';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { apiClient, TEST_KEY, writeModelsFile } from '../support/http/service.ts';
import { onEventStoreDb, testStoreEnv } from '../support/stores/testStore.ts';
import { size } from '../support/jest/size.ts';
import { misfitIn } from '../support/stores/misfitIn.ts';

/** Starting over EventStoreDB takes longer. */
const KILLS = onEventStoreDb() ? size({ small: 6, full: 40 }) : size({ small: 40, full: 200 });
const CLIENTS = 8;
const SESSION_TURNS = 12;

interface Acknowledged {
  session_id: string;
  input: string;
  output: string;
}

let folder: string;
let model: ScriptedModel;
let env: Record<string, string>;
const oddRequests: ChatRequest[] = [];
/** True while the model keeps its answers to itself. */
let held = false;

/** After the instruction, user and assistant take turns, and the user has the last word. */
const alternates = ({ messages }: ChatRequest): boolean =>
  messages[0]?.role === 'system' &&
  messages.slice(1).every(({ role }, index) => role === (index % 2 === 0 ? 'user' : 'assistant')) &&
  messages.at(-1)?.role === 'user';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-kills-'));
  model = await startScriptedModel(async (request) => {
    if (!alternates(request)) oddRequests.push(request);
    if (held) await new Promise(() => undefined);
    return { text: `re: ${request.messages.at(-1)!.content}`, delay_ms: Math.random() * 30 };
  });
  env = {
    DATA_DIR: join(folder, 'data'),
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'error',
    ...testStoreEnv(),
  };
});
afterAll(async () => {
  await model.close();
  await rm(folder, { recursive: true, force: true });
});

/** What the clients share: the server of the moment, and what was answered with 200. */
const load = {
  url: undefined as string | undefined,
  over: false,
  turns: [] as Acknowledged[],
  agents: [] as string[],
  unexpected: [] as unknown[],
};

/**
 * Converses until the load is over; a call that a kill cut off is lost, and the session goes on.
 */
async function converse(name: number): Promise<void> {
  let agent: string | undefined;
  let session: string | undefined;
  for (let call = 0; !load.over; call += 1) {
    if (load.url === undefined) {
      await sleep(5);
      continue;
    }
    const { post } = apiClient(load.url, TEST_KEY);
    const input = `${name}-${call}`;
    try {
      if (agent === undefined || call % 25 === 0) {
        const { status, body } = await post('/v1/agents', {
          name: input,
          instruction: 'Repeat.',
          model: 'scripted',
        });
        if (status !== 200)
          throw new Error(`create answered ${status} ${body.code}`, { cause: 'status' });
        agent = body.data.agent_id as string;
        session = undefined;
        load.agents.push(agent);
      }
      const { status, body } = await post(`/v1/agents/${agent}/run`, {
        input,
        ...(session === undefined ? {} : { session_id: session }),
      });
      if (status !== 200)
        throw new Error(`run answered ${status} ${body.code}`, { cause: 'status' });
      load.turns.push({ session_id: body.data.session_id, input, output: body.data.output });
      session = call % SESSION_TURNS === 0 ? undefined : body.data.session_id;
    } catch (error) {
      // A connection that broke is what a kill looks like; any answer but 200 is not.
      if ((error as Error).cause === 'status') load.unexpected.push(error);
    }
  }
}

async function killAtRandom(server: ServerProcess): Promise<void> {
  const inStart = Math.random() < 0.15;
  if (inStart) {
    await sleep(Math.random() * 300);
  } else {
    load.url = await server.ready;
    await sleep(30 + Math.random() * 500);
  }
  server.kill('SIGKILL');
  load.url = undefined;
  await server.exited;
}

/** Random moments may all miss the turns: this one does not. */
async function killInTurn(server: ServerProcess): Promise<void> {
  load.url = await server.ready;
  held = true;
  await model.received(model.requests.length + 1);
  server.kill('SIGKILL');
  load.url = undefined;
  await server.exited;
  held = false;
}

/** Every session there is, page by page; also those of which no client ever heard. */
async function allSessions(url: string): Promise<Array<{ session_id: string; agent_id: string }>> {
  const sessions = [];
  for (let next: string | undefined = '/v1/sessions?limit=1000'; next !== undefined;) {
    const { body, headers } = await apiClient(url, TEST_KEY).get(next);
    sessions.push(...body.data);
    next = /^<([^>]+)>/.exec(headers.get('link') ?? '')?.[1];
  }
  return sessions;
}

test(
  `${KILLS} kills at random moments under load lose nothing that was acknowledged`,
  async () => {
    const clients = Array.from({ length: CLIENTS }, (_, name) => converse(name));
    for (let kill = 1; kill < KILLS; kill += 1) await killAtRandom(startServerProcess(env));
    await killInTurn(startServerProcess(env));
    const server = startServerProcess(env);
    load.url = await server.ready;
    const acknowledgedSoFar = load.turns.length;
    while (load.turns.length < acknowledgedSoFar + 5 * CLIENTS) await sleep(20);
    load.over = true;
    await Promise.all(clients);
    const { get, post } = apiClient(load.url, TEST_KEY);

    expect(load.unexpected).toEqual([]);
    expect(oddRequests).toEqual([]);
    expect(load.turns.length).toBeGreaterThan(KILLS);

    const agents = (await get('/v1/agents')).body.data.map(
      ({ agent_id }: { agent_id: string }) => agent_id,
    ) as string[];
    expect(load.agents.filter((agent) => !agents.includes(agent))).toEqual([]);

    const heard = new Set((await allSessions(load.url)).map(({ session_id }) => session_id));
    expect(load.turns.filter(({ session_id }) => !heard.has(session_id))).toEqual([]);
    const bySession = Map.groupBy(load.turns, ({ session_id }) => session_id);
    const ends = new Set<string>();
    for (const { session_id, agent_id } of await allSessions(load.url)) {
      const { turns, status } = (await get(`/v1/sessions/${session_id}?limit=1000`)).body.data;
      expect(status).toBe('idle');
      for (const turn of turns) ends.add(turn.status);
      for (const { input, output } of bySession.get(session_id) ?? []) {
        expect(
          turns
            .filter((turn: any) => turn.input === input)
            .map((turn: any) => [turn.status, turn.output]),
        ).toEqual([['completed', output]]);
      }
      if (turns.some((turn: any) => turn.status === 'interrupted'))
        expect(
          (await post(`/v1/agents/${agent_id}/run`, { input: 'still there?', session_id })).status,
        ).toBe(200);
    }
    expect([...ends].toSorted()).toEqual(['completed', 'interrupted']);

    server.kill('SIGTERM');
    expect(await server.exited).toBe(0);
    expect(await misfitIn(env['EVENTSTOREDB_URL'] ?? env['DATA_DIR']!)).toBeUndefined();
  },
  30 * 60_000,
);
