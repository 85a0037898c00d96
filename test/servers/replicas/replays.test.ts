import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Client } from '../../support/http/service.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { eventually } from '../../support/processes/operator.ts';
import { clientOf, health, replicaProcesses } from '../../support/processes/replicaProcesses.ts';
import type { ServerProcess } from '../../support/processes/serverProcess.ts';

const postgres = await startPostgresServer();
const LONG_MS = 240_000;
const SESSIONS = 3;
const TURNS = 6;

interface Turn {
  input: string;
  status: string;
}

function suite(serverUrl: string): void {
  let replicas: Awaited<ReturnType<typeof replicaProcesses>>;
  let servers: ServerProcess[];
  beforeAll(async () => {
    replicas = await replicaProcesses(serverUrl);
    const env = { VISIBILITY_WAIT_MS: '20000' };
    replicas.start('projector', env);
    servers = [replicas.start('api', env), replicas.start('api', env)];
    await Promise.all(servers.map(({ ready }) => ready));
  }, LONG_MS);
  afterAll(() => replicas.close());

  async function record(api: Client, agent: string, name: string): Promise<string> {
    let session: string | undefined;
    for (let turn = 1; turn <= TURNS; turn += 1) {
      const body = { input: `${name} ${turn}`, ...(session && { session_id: session }) };
      const reply = await api.post(`/v1/agents/${agent}/run`, body);
      expect(reply.status).toBe(200);
      session = reply.body.data.session_id as string;
    }
    return session!;
  }

  /** The server that replays, and the one that stands by. */
  const inTurn = (): Promise<[ServerProcess, ServerProcess]> =>
    eventually(
      async () => {
        const states = await Promise.all(
          servers.map(async (server) => (await health(await clientOf(server)))?.replays?.state),
        );
        expect(states.filter((state) => state === 'active').length).toBeLessThan(2);
        const active = servers[states.indexOf('active')];
        return [active, servers.find((server) => server !== active)] as const;
      },
      ([active]) => active !== undefined,
    ) as Promise<[ServerProcess, ServerProcess]>;

  test(
    'another process goes on where the one that was killed ended, and replays every turn once',
    async () => {
      const [active, other] = await inTurn();
      const api = await clientOf(other);
      const agent = (
        await api.post('/v1/agents', {
          name: 'Test',
          instruction: 'Be brief.',
          model: 'scripted',
        })
      ).body.data.agent_id as string;
      const names = Array.from({ length: SESSIONS }, (_, name) => `session ${name}`);
      const sessions = await Promise.all(names.map((name) => record(api, agent, name)));

      const { model } = replicas;
      const asked = model.requests.length;
      model.use(() => ({ text: 'Done.', delay_ms: 50 }));
      const started = await api.post('/v1/replays', {
        sessions,
        tools: 'recorded',
        concurrency: SESSIONS,
        budget: { tokens: 1_000_000 },
      });
      expect(started.status).toBe(202);
      const path = `/v1/replays/${started.body.data.replay_id}`;
      await model.received(asked + (SESSIONS * TURNS) / 2);
      active.kill('SIGKILL');
      await active.exited;
      servers = [other];

      const ended = await eventually(
        async () => (await api.get(path)).body.data,
        ({ status }) => status !== 'running',
      );
      expect(ended.status).toBe('completed');
      const all = SESSIONS * TURNS;
      expect(ended.sums).toMatchObject({
        sessions: { total: SESSIONS, completed: SESSIONS },
        turns: { total: all, same: all },
        requests: { same: all },
      });
      const made = (await api.get(`${path}/sessions`)).body.data as { replay_session_id: string }[];
      const replayed = await Promise.all(
        made.map(async ({ replay_session_id }) => {
          const { turns } = (await api.get(`/v1/sessions/${replay_session_id}`)).body.data;
          const completed = (turns as Turn[]).filter(({ status }) => status === 'completed');
          return completed.map(({ input }) => input);
        }),
      );
      const recorded = names.map((name) =>
        Array.from({ length: TURNS }, (_, index) => `${name} ${index + 1}`),
      );
      expect(new Set(replayed.map(String))).toEqual(new Set(recorded.map(String)));
      expect(replayed).toHaveLength(SESSIONS);
      expect((await inTurn())[0]).toBe(other);
    },
    LONG_MS,
  );
}

if (postgres) {
  describe('replays of several processes', () => suite(postgres.url));
  afterAll(postgres.close);
} else {
  withoutPostgres('replays of several processes');
}
