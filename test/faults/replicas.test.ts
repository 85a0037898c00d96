import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ChatRequest } from '../../shared/sessions/turns/chat.ts';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../support/servers/eventstoredb/eventStoreDbProcess.ts';
import {
  createTestDatabase,
  type TestDatabase,
} from '../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../support/servers/postgres/postgresServer.ts';
import { startReplicas, unlessCut } from '../support/processes/replicas.ts';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { TEST_KEY, writeModelsFile, type Client, type Reply } from '../support/http/service.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../support/jest/size.ts';
import { misfitIn } from '../support/stores/misfitIn.ts';
import { testMasterKeyFile } from '../support/stores/masterKeyFile.ts';
import { testSigningKeyFile } from '../support/builders/signingKey.ts';

const LOAD_MS = size({ small: 20_000, full: 60_000 });
/** So much longer where processes start more slowly than they are killed, and nothing is answered. */
const BUSY_MS = 120_000;
/** Turns whose replica dies while they run; of so many, one has no answer by then. */
const CUT = 5;
const CLOSED_WITHIN_MS = 40_000;
/** Two clients each share a session, so that runs of one session meet on different replicas. */
const PAIRS = 4;
const postgres = await startPostgresServer();

interface Turn {
  session_id: string;
  input: string;
  output: string;
}

const acknowledged = { agents: new Set<string>(), turns: [] as Turn[] };
const sent = new Set<string>();
const violations: string[] = [];
const modelCalls = new Map<string, number>();
const load = { over: false, reads: 0, cut: 0 };

const anyOf = <Item>(items: readonly Item[]): Item | undefined =>
  items[Math.floor(Math.random() * items.length)];
const inputOf = ({ messages }: ChatRequest): string => messages.at(-1)!.content ?? '';
const alternates = ({ messages }: ChatRequest): boolean =>
  messages.slice(1).every(({ role }, index) => role === (index % 2 === 0 ? 'user' : 'assistant'));

/** Reads on every replica that is up; one that is starting, or dies over it, has said nothing. */
async function readEverywhere(
  clients: readonly Client[],
  path: string,
  shows: (data: any) => boolean,
): Promise<void> {
  await Promise.all(
    clients.map(async ({ get }, replica) => {
      const reply = await unlessCut(get(path));
      if (!reply || reply.status === 503) return;
      load.reads += 1;
      if (reply.status !== 200 || !shows(reply.body.data))
        violations.push(
          `replica ${replica} answers ${path} with ${reply.status} ${JSON.stringify(reply.body).slice(0, 500)}`,
        );
    }),
  );
}

function refused({ status, body: { code } }: Reply): undefined {
  const name = `${status} ${code}`;
  if (!['503 store_unavailable', '409 session_busy'].includes(name))
    violations.push(`answered ${name}`);
  return undefined;
}

function suite(serverUrl: string): void {
  let folder: string;
  let database: TestDatabase;
  let eventStore: EventStoreDbProcess;
  let model: ScriptedModel;
  let replicas: ReturnType<typeof startReplicas>;

  beforeAll(async () => {
    folder = await temporaryFolder();
    database = await createTestDatabase(serverUrl);
    eventStore = await startEventStoreDbProcess({ folder });
    model = await startScriptedModel((request) => {
      if (!alternates(request))
        violations.push(`the model was shown ${JSON.stringify(request.messages)}`);
      modelCalls.set(inputOf(request), (modelCalls.get(inputOf(request)) ?? 0) + 1);
      return { text: `re: ${inputOf(request)}`, delay_ms: Math.random() * 200 };
    });
    const env = {
      EVENTSTOREDB_URL: eventStore.connectionString,
      DATABASE_URL: database.url,
      MASTER_KEY_FILE: testMasterKeyFile(),
      LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
      MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
      BOOTSTRAP_API_KEY: TEST_KEY,
      LOG_LEVEL: 'error',
      // A dead owner's turn is not closed before 30 s: a client that meets it begins another
      // session.
      RUN_WAIT_MS: '1000',
      // Longer than a projector takes to take over, also when both are killed: what is acknowledged
      // is readable then, always.
      VISIBILITY_WAIT_MS: '30000',
    };
    replicas = startReplicas(env, ['api', 'api', 'api', 'projector', 'projector']);
    await replicas.ready();
  }, 120_000);
  afterAll(async () => {
    await replicas.stop();
    await model.close();
    await eventStore.kill('SIGTERM');
    await database.drop();
    await rm(folder, { recursive: true });
  });

  async function create(client: Client, name: string): Promise<string | undefined> {
    const reply = await unlessCut(
      client.post('/v1/agents', { name, instruction: 'Repeat.', model: 'scripted' }),
    );
    if (!reply) return undefined;
    if (reply.status !== 200) return refused(reply);
    const { agent_id } = reply.body.data as { agent_id: string };
    acknowledged.agents.add(agent_id);
    await readEverywhere(replicas.clients(), '/v1/agents', (agents: { agent_id: string }[]) =>
      agents.some((agent) => agent.agent_id === agent_id),
    );
    return agent_id;
  }

  /**
   * Resolves with the session to go on with: none when its place may be held by a turn of the dead.
   */
  async function run(
    client: Client,
    input: string,
    { agent, session }: { agent: string; session: string | undefined },
  ): Promise<string | undefined> {
    sent.add(input);
    const reply = await unlessCut(
      client.post(`/v1/agents/${agent}/run`, {
        input,
        ...(session === undefined ? {} : { session_id: session }),
      }),
    );
    // The model was asked: its turn has begun.
    if (!reply && modelCalls.has(input)) load.cut += 1;
    if (!reply) return undefined;
    if (reply.status !== 200) return refused(reply);
    const turn: Turn = {
      session_id: reply.body.data.session_id,
      input,
      output: reply.body.data.output,
    };
    acknowledged.turns.push(turn);
    const shows = ({ turns }: { turns: any[] }): boolean =>
      turns.some(
        (shown) =>
          shown.input === input && shown.status === 'completed' && shown.output === turn.output,
      );
    await readEverywhere(replicas.clients(), `/v1/sessions/${turn.session_id}?limit=1000`, shows);
    return turn.session_id;
  }

  async function converse(pair: number, name: string): Promise<void> {
    const shared = sessions[pair]!;
    for (let call = 0; !load.over; call += 1) {
      const client = anyOf(replicas.clients());
      if (!client) {
        await sleep(50);
        continue;
      }
      if (shared.agent === undefined || call % 20 === 0) {
        const agent = await create(client, `${name}-${call}`);
        if (agent !== undefined) Object.assign(shared, { agent, session: undefined });
        continue;
      }
      const { agent, session } = shared;
      const next = await run(client, `${name}-${call}`, { agent, session });
      if (shared.agent === agent && shared.session === session)
        shared.session = call % 30 === 0 ? undefined : next;
      const before = anyOf(acknowledged.turns);
      if (before)
        await readEverywhere(
          replicas.clients(),
          `/v1/sessions/${before.session_id}?limit=1000`,
          ({ turns }) =>
            turns.some(
              (shown: any) => shown.input === before.input && shown.output === before.output,
            ),
        );
    }
  }
  const sessions = Array.from({ length: PAIRS }, () => ({
    agent: undefined as string | undefined,
    session: undefined as string | undefined,
  }));

  async function allSessions(client: Client): Promise<{ session_id: string; status: string }[]> {
    const all: { session_id: string; status: string }[] = [];
    for (let path: string | undefined = '/v1/sessions?limit=1000'; path !== undefined;) {
      const { body, headers } = await client.get(path);
      all.push(...body.data);
      path = /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1];
    }
    return all;
  }

  test(
    'replicas that are killed at random under load answer as one: all that was acknowledged is there everywhere, once, in order',
    async () => {
      const until = performance.now() + LOAD_MS;
      const clients = Array.from({ length: 2 * PAIRS }, (_, index) =>
        converse(Math.floor(index / 2), `client${index}`),
      );
      const killed = { api: 0, projector: 0 };
      let lastKill = performance.now();
      const isEnough = () =>
        Math.min(killed.api, killed.projector, acknowledged.turns.length) > 0 &&
        load.cut >= CUT &&
        load.reads > acknowledged.turns.length;
      const atMost = until + BUSY_MS;
      while (performance.now() < until || (!isEnough() && performance.now() < atMost)) {
        while (replicas.clients().length === 0 && performance.now() < atMost) await sleep(25);
        await sleep(500 + Math.random() * 2_500);
        lastKill = performance.now();
        killed[await replicas.killAny(Math.random() * 1_000)] += 1;
      }
      load.over = true;
      await Promise.all(clients);
      await replicas.ready();
      const [client] = replicas.clients();
      while (
        performance.now() < lastKill + CLOSED_WITHIN_MS &&
        (await allSessions(client!)).some(({ status }) => status !== 'idle')
      )
        await sleep(250);

      expect(replicas.failures).toEqual([]);
      expect(violations).toEqual([]);
      expect(Math.min(killed.api, killed.projector)).toBeGreaterThan(0);
      expect(load.reads).toBeGreaterThan(acknowledged.turns.length);

      const ends = new Map<string, number>();
      const shown = new Map<string, number>();
      const listed = await allSessions(client!);
      expect(listed.filter(({ status }) => status !== 'idle')).toEqual([]);
      const transcripts = new Map<string, any[]>();
      for (const { session_id } of listed) {
        const { turns } = (await client!.get(`/v1/sessions/${session_id}?limit=1000`)).body.data;
        transcripts.set(session_id, turns);
        for (const turn of turns) {
          ends.set(turn.status, (ends.get(turn.status) ?? 0) + 1);
          shown.set(turn.input, (shown.get(turn.input) ?? 0) + 1);
        }
        const types = (
          await client!.get(`/v1/sessions/${session_id}/events?limit=1000`)
        ).body.data.map(({ type }: { type: string }) => type.replace(/^session\.(.+)\.v1$/, '$1'));
        expect(types.join(' ')).toMatch(
          /^started( turn_started turn_(completed|failed|interrupted))+$/,
        );
      }
      for (const { session_id, input, output } of acknowledged.turns) {
        expect(
          transcripts
            .get(session_id)!
            .filter((turn) => turn.input === input)
            .map((turn) => [turn.status, turn.output]),
        ).toEqual([['completed', output]]);
      }
      expect([...shown].filter(([input, times]) => times !== 1 || !sent.has(input))).toEqual([]);
      expect([...modelCalls].filter(([, times]) => times !== 1)).toEqual([]);
      expect(ends.get('interrupted') ?? 0).toBeGreaterThan(0);
      const agents = (await client!.get('/v1/agents')).body.data.map(
        ({ agent_id }: { agent_id: string }) => agent_id,
      ) as string[];
      expect(agents).toHaveLength(new Set(agents).size);
      expect([...acknowledged.agents].filter((agent) => !agents.includes(agent))).toEqual([]);

      expect(await replicas.stop()).toEqual([0, 0, 0, 0, 0]);
      expect(await misfitIn(eventStore.connectionString)).toBeUndefined();
    },
    LOAD_MS + BUSY_MS + 240_000,
  );
}

if (postgres) {
  describe('three API replicas and two projectors', () => suite(postgres.url));
  afterAll(postgres.close);
} else {
  withoutPostgres('three API replicas and two projectors');
}
