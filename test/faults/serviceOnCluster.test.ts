/**
 * The service over a cluster of three EventStoreDB nodes that lose their quorum and their leader
 * under load: nothing that was answered 200 is lost or doubled, the process lives, and it serves
 * again as soon as somebody leads. At its full size it takes about half an hour.
 */
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  startEventStoreDbClusterProcess,
  type EventStoreDbClusterProcess,
} from '../support/servers/eventstoredb/eventStoreDbClusterProcess.ts';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { apiClient, TEST_KEY, writeModelsFile, type Client } from '../support/http/service.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../support/jest/size.ts';

/** For each form of the connection string. */
const QUORUM_LOSSES = size({ small: 1, full: 5 });
const LEADER_FAULTS = size({ small: 3, full: 10 });
const [SHORTEST_LOSS_MS, LONGEST_LOSS_MS] = size({
  small: [5_000, 8_000],
  full: [20_000, 40_000],
});
const FREEZE_MS = size({ small: 5_000, full: 15_000 });
const BETWEEN_MS = size({ small: 1_500, full: 3_000 });
const WRITERS = 16;
/** From the moment at which somebody leads. Other suites run beside the small size. */
const FIRST_ANSWER_MS = size({ small: 20_000, full: 2_000 });
const CLOSED_MS = size({ small: 40_000, full: 5_000 });
const TEST_MS = size({ small: 240_000, full: 1_500_000 });

let folder: string;
let model: ScriptedModel;
let cluster: EventStoreDbClusterProcess;
let server: ServerProcess | undefined;
beforeEach(async () => {
  folder = await temporaryFolder();
  model = await startScriptedModel(({ messages }) => ({
    text: `re: ${messages.at(-1)!.content}`,
    delay_ms: Math.random() * 10,
  }));
  cluster = await startEventStoreDbClusterProcess({ folder });
}, 60_000);
afterEach(async () => {
  server?.kill('SIGKILL');
  await server?.exited;
  server = undefined;
  await cluster.close();
  await model.close();
  await rm(folder, { recursive: true });
}, 60_000);

async function startService(url: string): Promise<Client> {
  const env = {
    DATA_DIR: `${folder}/data`,
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    EVENTSTOREDB_URL: url,
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'warn',
    VISIBILITY_WAIT_MS: '2000',
  };
  server = startServerProcess(env);
  return apiClient(await server.ready, TEST_KEY);
}

interface Turn {
  session_id: string;
  input: string;
}

interface Load {
  acknowledged: Turn[];
  /** When each 200 came, by `performance.now`. */
  answeredAt: number[];
  /** Answers other than 200, by code. */
  refusals: Map<string, number>;
  /**
   * How long a read took that came right after a write of its own, and whether it showed the write.
   */
  reads: Array<{ ms: number; shown: boolean }>;
  stop(): Promise<void>;
}

/**
 * Writers with a session each, that say one thing after the other, and look now and then whether it
 * is there.
 */
function startLoad({ post, get }: Client, agent: string): Load {
  const load = {
    acknowledged: [] as Turn[],
    answeredAt: [] as number[],
    refusals: new Map<string, number>(),
    reads: [] as Load['reads'],
  };
  const state = { over: false };

  async function look({ session_id, input }: Turn): Promise<void> {
    const began = performance.now();
    const { status, body } = await get(`/v1/sessions/${session_id}?limit=1000`);
    if (status !== 200) return;
    load.reads.push({
      ms: performance.now() - began,
      shown: body.data.turns.some((turn: { input: string }) => turn.input === input),
    });
  }

  async function converse(writer: number): Promise<void> {
    let session_id: string | undefined;
    for (let call = 0; !state.over; call += 1) {
      // A page of the transcript holds 1,000 turns; long before that the writer goes on in another
      // session.
      if (call % 400 === 0) session_id = undefined;
      const input = `${writer}-${call}`;
      const { status, body } = await post(`/v1/agents/${agent}/run`, {
        input,
        ...(session_id === undefined ? {} : { session_id }),
      });
      if (status === 200) {
        session_id = body.data.session_id as string;
        load.acknowledged.push({ session_id, input });
        load.answeredAt.push(performance.now());
        if (call % 10 === 0) await look({ session_id, input });
      } else {
        const code = `${status} ${body.code}`;
        load.refusals.set(code, (load.refusals.get(code) ?? 0) + 1);
        await sleep(100);
      }
    }
  }

  const writing = Promise.all(Array.from({ length: WRITERS }, (_, writer) => converse(writer)));
  return {
    ...load,
    async stop() {
      state.over = true;
      await writing;
    },
  };
}

const followersOf = (leader: number): [number, number] =>
  [0, 1, 2].filter((index) => index !== leader) as [number, number];

/** Takes two nodes away and brings them back. */
async function loseQuorum(kind: number): Promise<void> {
  const leader = await cluster.untilLeader();
  const [first, second] = followersOf(leader);
  const away = kind % 2 === 0 ? [first, second] : [leader, first];
  const freezes = kind % 3 === 2;
  const ms = SHORTEST_LOSS_MS + Math.random() * (LONGEST_LOSS_MS - SHORTEST_LOSS_MS);
  if (freezes) away.forEach(cluster.freeze);
  else
    await Promise.all(
      away.map((index) => cluster.kill(index, kind % 3 === 0 ? 'SIGKILL' : 'SIGTERM')),
    );
  await sleep(ms);
  if (freezes) away.forEach(cluster.thaw);
  else await Promise.all(away.map((index) => cluster.start(index)));
}

/** Takes the leader away. Resolves with what brings it back. */
async function loseLeader(kind: number): Promise<() => Promise<void>> {
  const leader = await cluster.untilLeader();
  if (kind % 3 === 0) {
    await cluster.kill(leader);
    return () => cluster.start(leader);
  }
  if (kind % 3 === 1) {
    await cluster.resign();
    return () => Promise.resolve();
  }
  cluster.freeze(leader);
  const thawed = sleep(FREEZE_MS).then(() => cluster.thaw(leader));
  return () => thawed;
}

/** In how many milliseconds after `since` the next 200 came. */
async function untilAnswered({ answeredAt }: Load, since: number): Promise<number> {
  for (;;) {
    const at = answeredAt.find((time) => time > since);
    if (at !== undefined) return at - since;
    if (performance.now() - since > 60_000) return Infinity;
    await sleep(5);
  }
}

/** Holds the answers against what is recorded. */
async function expectNothingLostOrDoubled({ get }: Client, { acknowledged }: Load): Promise<void> {
  const sessions = Map.groupBy(acknowledged, ({ session_id }) => session_id);
  for (const [session_id, own] of sessions) {
    const { turns } = (await get(`/v1/sessions/${session_id}?limit=1000`)).body.data as {
      turns: Array<{ input: string; status: string; output: string | null }>;
    };
    const inputs = turns.map(({ input }) => input);
    expect(new Set(inputs).size).toBe(inputs.length);
    const completed = turns.filter(({ status }) => status === 'completed');
    for (const { input, output } of completed) expect(output).toBe(`re: ${input}`);
    const answered = new Set(completed.map(({ input }) => input));
    expect(own.filter(({ input }) => !answered.has(input))).toEqual([]);
  }
}

async function expectNoTurnOpen({ get }: Client): Promise<void> {
  for (const deadline = performance.now() + CLOSED_MS; ; await sleep(100)) {
    const open: unknown[] = [];
    for (let after = ''; ;) {
      const { body, headers } = await get(`/v1/sessions?limit=1000${after}`);
      open.push(
        ...(body.data as Array<{ status: string }>).filter(({ status }) => status !== 'idle'),
      );
      const next = /[?&]after=([^&>]+)/.exec(headers.get('link') ?? '')?.[1];
      if (next === undefined) break;
      after = `&after=${next}`;
    }
    if (open.length === 0) return;
    if (performance.now() > deadline) return expect(open).toEqual([]);
  }
}

async function finish(client: Client, load: Load, firstAnswers: number[]): Promise<void> {
  await sleep(BETWEEN_MS);
  await load.stop();
  const percentile = (part: number): number =>
    load.reads.map(({ ms }) => ms).toSorted((a, b) => a - b)[
      Math.floor(part * (load.reads.length - 1))
    ] ?? 0;
  process.stdout.write(
    `${load.acknowledged.length} answered 200; others: ${JSON.stringify(Object.fromEntries(load.refusals))}; first 200 after a leader: ${firstAnswers.map(Math.round).join(', ')} ms; ${load.reads.length} reads, p99 ${Math.round(percentile(0.99))} ms, longest ${Math.round(percentile(1))} ms\n`,
  );
  await expectNoTurnOpen(client);
  await expectNothingLostOrDoubled(client, load);
  expect(
    [...load.refusals.keys()].filter(
      (code) => !/^503 (store_unavailable|turn_interrupted)$/.test(code),
    ),
  ).toEqual([]);
  expect(load.reads.filter(({ shown }) => !shown)).toEqual([]);
  expect(Math.max(...firstAnswers)).toBeLessThanOrEqual(FIRST_ANSWER_MS);
  // The process that was started is the one that answers.
  server!.kill('SIGTERM');
  expect(await server!.exited).toBe(0);
}

describe.each(['esdb', 'esdb+discover'])('with %s://', (scheme) => {
  const url = (): string =>
    `${scheme}://${cluster.ports.map((port) => `127.0.0.1:${port}`).join(',')}?tls=false`;
  const agentOf = async ({ post }: Client): Promise<string> =>
    (await post('/v1/agents', { name: 'Echo', instruction: 'Repeat.', model: 'scripted' })).body
      .data.agent_id as string;

  test(
    'a cluster that loses its quorum again and again',
    async () => {
      const client = await startService(url());
      const load = startLoad(client, await agentOf(client));
      const firstAnswers: number[] = [];
      for (let round = 0; round < QUORUM_LOSSES; round += 1) {
        await sleep(BETWEEN_MS);
        await loseQuorum(round + (scheme === 'esdb' ? 0 : 2));
        await cluster.untilLeader(60_000);
        firstAnswers.push(await untilAnswered(load, performance.now()));
      }
      await finish(client, load, firstAnswers);
    },
    TEST_MS,
  );

  test(
    'a leader that is killed, resigns and freezes',
    async () => {
      const client = await startService(url());
      const load = startLoad(client, await agentOf(client));
      const firstAnswers: number[] = [];
      for (let round = 0; round < LEADER_FAULTS; round += 1) {
        await sleep(BETWEEN_MS);
        const bringBack = await loseLeader(round);
        await cluster.untilLeader(60_000);
        firstAnswers.push(await untilAnswered(load, performance.now()));
        await bringBack();
      }
      await finish(client, load, firstAnswers);
    },
    TEST_MS,
  );

  test(
    'a first host that is dead at the start, and later while it is connected',
    async () => {
      await cluster.kill(0);
      await cluster.untilLeader(60_000);
      const client = await startService(url());
      const load = startLoad(client, await agentOf(client));
      await sleep(BETWEEN_MS);
      await cluster.start(0);
      await sleep(BETWEEN_MS);
      await cluster.kill(0);
      await cluster.untilLeader(60_000);
      const firstAnswers = [await untilAnswered(load, performance.now())];
      await cluster.start(0);
      await finish(client, load, firstAnswers);
    },
    TEST_MS,
  );
});
