import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../shared/limits.ts';
import type { ChatRequest } from '../../shared/sessions/turns/chat.ts';
import type { SessionEvent } from '../../shared/sessions/events.ts';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile } from '../support/http/service.ts';
import { size } from '../support/jest/size.ts';
import { startServerProcess } from '../support/processes/serverProcess.ts';
import {
  cancelReplayOf,
  comparisonsIn,
  endOf,
  eventsOf,
  startReplayOf,
  toldOf,
} from '../support/builders/replays.ts';
import { eventually } from '../support/processes/operator.ts';
import { testStoreEnv } from '../support/stores/testStore.ts';

const SESSIONS = size({ small: 6, full: 1_000 });
const TURNS = size({ small: 4, full: 20 });
const KILLS = size({ small: 3, full: 10 });
const CLIENTS = 4;

let folder: string;
let data: string;
let model: ScriptedModel;
let env: Record<string, string>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-replays-'));
  data = join(folder, 'data');
  model = await startScriptedModel(({ messages }) => ({
    text: `${messages.length}: ${messages.at(-1)!.content}`,
    delay_ms: 5,
  }));
  env = {
    DATA_DIR: data,
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'error',
    RATE_LIMIT_PER_SECOND: '100000',
    ...testStoreEnv(),
  };
});
afterAll(async () => {
  await model.close();
  await rm(folder, { recursive: true, force: true });
});

async function agentAt(url: string): Promise<string> {
  const agent = { name: 'Test', instruction: 'Repeat.', model: 'scripted' };
  const { body } = await apiClient(url, TEST_KEY).post('/v1/agents', agent);
  return body.data.agent_id as string;
}

async function record(url: string, agent: string, name: string): Promise<string> {
  const { post } = apiClient(url, TEST_KEY);
  let session: string | undefined;
  for (let turn = 1; turn <= TURNS; turn += 1) {
    const body = { input: `${name}/${turn} 😀`, ...(session && { session_id: session }) };
    session = (await post(`/v1/agents/${agent}/run`, body)).body.data.session_id as string;
  }
  return session!;
}

/** Runs of clients, one after the other, while the server lives. */
function liveTraffic(agent: string) {
  let url: string | undefined;
  const load = { over: false, answered: 0 };
  async function client(): Promise<void> {
    while (!load.over) {
      const answer = url
        ? await apiClient(url, TEST_KEY)
            .post(`/v1/agents/${agent}/run`, { input: 'live' })
            .catch(() => undefined)
        : undefined;
      if (answer?.status === 200) load.answered += 1;
      await sleep(10);
    }
  }
  const clients = Array.from({ length: CLIENTS }, client);
  return {
    to: (at: string | undefined) => void (url = at),
    async end(): Promise<number> {
      load.over = true;
      await Promise.all(clients);
      return load.answered;
    },
  };
}

/** Requests to the model whose last message contains the text. */
const requestsWith = (text: string): number =>
  model.requests.filter(({ messages }) => messages.at(-1)!.content!.includes(text)).length;

const turnsOf = (events: readonly SessionEvent[], type: SessionEvent['type']): number[] =>
  events.flatMap((event) => (event.type === type && 'turn' in event.data ? [event.data.turn] : []));

/** What was recorded of a session, each turn once, whatever was interrupted in between. */
function expectReplayed(recorded: readonly SessionEvent[], replayed: readonly SessionEvent[]) {
  const completed = new Set(turnsOf(replayed, 'session.turn_completed.v1'));
  const runOf = replayed.flatMap((event) =>
    event.type === 'session.turn_started.v1' && completed.has(event.data.turn)
      ? [event.data.replay_of]
      : [],
  );
  expect(runOf).toEqual(turnsOf(recorded, 'session.turn_completed.v1'));
  const outputs = (events: readonly SessionEvent[]) =>
    events.flatMap((event) =>
      event.type === 'session.turn_completed.v1'
        ? [[event.data.output, event.data.calls[0]!.request_sha256]]
        : [],
    );
  expect(outputs(replayed)).toEqual(outputs(recorded));
}

test(
  `a replay of ${SESSIONS} sessions goes on after ${KILLS} kills, and replays every turn once`,
  async () => {
    let server = startServerProcess(env);
    let url = await server.ready;
    const agent = await agentAt(url);
    const sessions: string[] = [];
    const names = Array.from({ length: SESSIONS }, (_, name) => `${name}`).values();
    const recorders = Array.from({ length: 4 }, async () => {
      for (const name of names) sessions.push(await record(url, agent, name));
    });
    await Promise.all(recorders);

    const live = liveTraffic(agent);
    live.to(url);
    const id = await startReplayOf(data, { sessions, concurrency: 4 });
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const all = SESSIONS * TURNS * 2;
      const due = Math.floor((all * (kill / (KILLS + 1) + 1)) / 2);
      const begun = requestsWith('😀');
      // Not those of clients: a turn that is open in too many kills is not run again.
      const next = begun + Math.max(1, Math.min(due - begun, TURNS));
      await eventually(
        async () => requestsWith('😀'),
        (count) => count >= next,
      );
      await sleep(Math.random() * 20);
      live.to(undefined);
      server.kill('SIGKILL');
      await server.exited;
      server = startServerProcess(env);
      url = await server.ready;
      live.to(url);
    }
    const told = await endOf(data, id);
    expect(await live.end()).toBeGreaterThan(0);

    expect(told.events.at(-1)).toMatchObject({ data: { status: 'completed' } });
    expect(told.made.size).toBe(SESSIONS);
    const compared = comparisonsIn(told);
    expect(compared).toHaveLength(SESSIONS * TURNS);
    expect(compared.filter(({ outcome }) => outcome !== 'same')).toEqual([]);
    expect(compared.filter(({ requests }) => requests !== 'same')).toEqual([]);
    let interrupted = 0;
    for (const session of sessions) {
      const replayed = await eventsOf(data, told.made.get(session)!);
      expectReplayed(await eventsOf(data, session), replayed);
      interrupted += turnsOf(replayed, 'session.turn_interrupted.v1').length;
    }
    process.stdout.write(`${interrupted} turns were begun again\n`);
    server.kill('SIGTERM');
    expect(await server.exited).toBe(0);
  },
  size({ small: 10, full: 120 }) * 60_000,
);

test('a turn in which the process always dies fails after some starts, and those beside it do not', async () => {
  const echo = ({ messages }: ChatRequest) => ({ text: messages.at(-1)!.content! });
  model.use(echo);
  let server = startServerProcess(env);
  const url = await server.ready;
  const agent = await agentAt(url);
  const names = ['before', 'deadly', 'after'];
  const sessions = await Promise.all(names.map((name) => record(url, agent, name)));
  const [, deadly] = sessions;
  const recorded = requestsWith('deadly/2');
  // The turns beside it are open when the process dies.
  model.use((request) =>
    request.messages.at(-1)!.content!.includes('deadly/2')
      ? { fault: 'never_answer' }
      : { ...echo(request), delay_ms: 500 },
  );
  const id = await startReplayOf(data, { sessions, concurrency: 3 });
  for (let deaths = 1; deaths <= LIMITS.replays.tries; deaths += 1) {
    await eventually(
      async () => requestsWith('deadly/2') - recorded,
      (count) => count === deaths,
    );
    server.kill('SIGKILL');
    await server.exited;
    server = startServerProcess(env);
    await server.ready;
  }
  const told = await endOf(data, id);
  expect(requestsWith('deadly/2') - recorded).toBe(LIMITS.replays.tries);
  expect(told.events.at(-1)).toMatchObject({ data: { status: 'completed' } });
  const compared = comparisonsIn(told);
  expect(compared).toHaveLength(names.length * TURNS);
  expect(compared.filter(({ outcome }) => outcome !== 'same')).toMatchObject([
    { turn: 2, outcome: 'failed', code: 'crash' },
  ]);
  const replayed = await eventsOf(data, told.made.get(deadly!)!);
  expect(turnsOf(replayed, 'session.turn_interrupted.v1')).toEqual([2, 3, 4]);
  server.kill('SIGTERM');
  expect(await server.exited).toBe(0);
}, 120_000);

test('so does one in which it dies before the turn has begun', async () => {
  const sumsUp = ({ messages }: ChatRequest) => messages[0]!.content!.includes('Sum it up');
  const answer = (request: ChatRequest) => ({
    text: sumsUp(request) ? 'They asked.' : `Answer to ${request.messages.at(-1)!.content!}`,
  });
  model.use(answer);
  let server = startServerProcess(env);
  const { post } = apiClient(await server.ready, TEST_KEY);
  const agent = { name: 'Test', instruction: 'Be brief.', model: 'narrow', compaction: true };
  const { agent_id } = (await post('/v1/agents', agent)).body.data;
  let session_id: string | undefined;
  for (let turn = 1; !model.requests.some(sumsUp); turn += 1) {
    const body = { input: `question number ${turn}`, ...(session_id && { session_id }) };
    ({ session_id } = (await post(`/v1/agents/${agent_id}/run`, body)).body.data);
  }
  const summaries = (): number => model.requests.filter(sumsUp).length - 1;
  // The older turns are summed up before the last turn begins.
  model.use((request) => (sumsUp(request) ? { fault: 'never_answer' } : answer(request)));
  const id = await startReplayOf(data, { sessions: [session_id!] });
  for (let deaths = 1; deaths <= LIMITS.replays.tries; deaths += 1) {
    await eventually(
      async () => summaries(),
      (count) => count === deaths,
    );
    server.kill('SIGKILL');
    await server.exited;
    server = startServerProcess(env);
    await server.ready;
  }
  const told = await endOf(data, id);
  expect(summaries()).toBe(LIMITS.replays.tries);
  expect(told.events.at(-1)).toMatchObject({ data: { status: 'completed' } });
  const { outcome, code } = comparisonsIn(told).at(-1)!;
  expect({ outcome, code }).toEqual({ outcome: 'failed', code: 'crash' });
  const replayed = await eventsOf(data, told.made.get(session_id!)!);
  expect(turnsOf(replayed, 'session.turn_interrupted.v1')).toEqual([]);
  server.kill('SIGTERM');
  expect(await server.exited).toBe(0);
}, 120_000);

test('a replay that is cancelled stops within a second, and its turns are interrupted', async () => {
  const server = startServerProcess(env);
  const url = await server.ready;
  const agent = await agentAt(url);
  const sessions = await Promise.all(['a', 'b', 'c'].map((name) => record(url, agent, name)));
  model.use(() => new Promise(() => undefined));
  const asked = model.requests.length;
  const id = await startReplayOf(data, { sessions, concurrency: 3 });
  await model.received(asked + 3);
  const cut = model.abandonedSoFar();
  await cancelReplayOf(data, id);
  const cancelled = performance.now();
  await model.abandoned(cut + 3);
  expect(performance.now() - cancelled).toBeLessThan(size({ small: 20_000, full: 1_000 }));
  const told = await toldOf(data, id);
  expect(told.events.at(-1)).toMatchObject({ data: { status: 'cancelled' } });
  for (const made of told.made.values())
    expect((await eventsOf(data, made)).at(-1)).toMatchObject({
      type: 'session.turn_interrupted.v1',
      data: { reason: 'cancelled' },
    });
  server.kill('SIGTERM');
  expect(await server.exited).toBe(0);
}, 300_000);

test.each(['SIGKILL', 'SIGTERM'] as const)(
  'no judge is asked again after %s who has answered, and none is left that nothing names',
  async (signal) => {
    const judged = (): number =>
      model.requests.filter(({ messages }) => messages[0]!.content!.includes('You judge')).length;
    let hangs = true;
    model.use(({ messages }) => {
      if (messages[0]!.content!.includes('You judge')) return { text: 'PASS: It is.' };
      // The next turn keeps what was compared before from being recorded.
      return hangs && messages.length > 2 ? { fault: 'never_answer' } : { text: 'Hello.' };
    });
    hangs = false;
    let server = startServerProcess(env);
    const agent = await agentAt(await server.ready);
    const session = await record(await server.ready, agent, 'judged');
    hangs = true;
    const checks = JSON.stringify([{ judge: { model: 'scripted', criteria: 'It is kind.' } }]);
    const before = [judged(), model.requests.length] as const;
    const id = await startReplayOf(data, { sessions: [session], checks });
    await model.received(before[1] + 3);
    expect((await toldOf(data, id)).events.map(({ type }) => type)).not.toContain(
      'replay.turns_compared.v1',
    );
    server.kill(signal);
    await server.exited;
    hangs = false;
    server = startServerProcess(env);
    const url = await server.ready;
    const compared = comparisonsIn(await endOf(data, id));
    expect(judged() - before[0]).toBe(TURNS);
    const named = compared.flatMap(({ checks: made }) => made.map(({ session_id }) => session_id));
    const { get } = apiClient(url, TEST_KEY);
    const made = (await get(`/v1/sessions?replay_id=${id}&limit=1000`)).body.data;
    const judges = made.filter(({ turn_count }: any) => turn_count === 1);
    expect(named).toHaveLength(TURNS);
    expect(new Set(judges.map(({ session_id }: any) => session_id))).toEqual(new Set(named));
    server.kill('SIGTERM');
    expect(await server.exited).toBe(0);
  },
  120_000,
);

test('a kill gives a replay no more tokens than it had: tries that failed before it still count', async () => {
  const usage = { prompt_tokens: 60, completion_tokens: 40, total_tokens: 100 };
  const call = { name: 'calculator', arguments: '{"expression":"1+1"}' };
  const once = { ...env, MODEL_MAX_RETRIES: '0', MODEL_CIRCUIT_FAILURES: '1000' };
  let server = startServerProcess(once);
  const url = await server.ready;
  const { post } = apiClient(url, TEST_KEY);
  const agent = { name: 'Test', instruction: 'Add.', model: 'scripted', tool: 'calculator' };
  const { agent_id } = (await post('/v1/agents', agent)).body.data;
  let tries = 0;
  let hangsAt = Infinity;
  let fails = false;
  model.use(({ messages }) => {
    if (messages.at(-1)!.role === 'tool') return fails ? { status: 503 } : { text: 'Two.' };
    tries += 1;
    return tries === hangsAt ? { fault: 'never_answer' } : { tool_calls: [call], usage };
  });
  const { session_id } = (await post(`/v1/agents/${agent_id}/run`, { input: '1+1?' })).body.data;
  [tries, hangsAt, fails] = [0, 3, true];
  const asked = model.requests.length;
  const id = await startReplayOf(data, { sessions: [session_id], budget_tokens: 250 });
  // Two tries of two calls each, and the first call of the third.
  await model.received(asked + 5);
  server.kill('SIGKILL');
  await server.exited;
  server = startServerProcess(once);
  await server.ready;
  const told = await endOf(data, id);
  expect(tries).toBe(4);
  expect(comparisonsIn(told)).toMatchObject([{ outcome: 'failed', other_tokens: 200 }]);
  server.kill('SIGTERM');
  expect(await server.exited).toBe(0);
}, 120_000);
