import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { expectFailure } from '../support/http/failures.ts';
import {
  startPostgresProcess,
  type PostgresProcess,
} from '../support/servers/postgres/postgresProcess.ts';
import { eventually } from '../support/processes/operator.ts';
import { withoutPostgres } from '../support/servers/postgres/postgresServer.ts';
import { startTestService, type Reply, type TestService } from '../support/http/service.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { testMasterKeyFile } from '../support/stores/masterKeyFile.ts';
import { testSigningKeyFile } from '../support/builders/signingKey.ts';

const AWAY_MS = 30_000;
const CLIENTS = 4;
/**
 * Longer than it takes to judge the dead after the return, so that a turn of the living is open
 * meanwhile.
 */
const SLOW_MS = 20_000;
// A server of its own, because it is killed.
const postgres = await startPostgresProcess();

function suite(server: PostgresProcess): void {
  let folder: string;
  let eventStore: EventStoreDbProcess;
  let service: TestService;

  beforeAll(async () => {
    folder = await temporaryFolder();
    eventStore = await startEventStoreDbProcess({ folder });
    service = await startTestService(
      (request) => {
        const input = request.messages.at(-1)!.content!;
        return { text: `re: ${input}`, delay_ms: input === 'slow' ? SLOW_MS : 5 };
      },
      {
        EVENTSTOREDB_URL: eventStore.connectionString,
        DATABASE_URL: server.url,
        MASTER_KEY_FILE: testMasterKeyFile(),
        LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
        VISIBILITY_WAIT_MS: '2000',
      },
    );
  });
  afterAll(async () => {
    await service.close();
    await eventStore.kill('SIGTERM');
    await server.close();
    await rm(folder, { recursive: true });
  });

  test('while PostgreSQL is away for 30 s, known agents run and are recorded, reads are 503, and all recovers by itself', async () => {
    const [known, unknown] = [await service.createAgent(), await service.createAgent()];
    const turns: { session_id: string; input: string }[] = [];
    const state = { away: false, over: false, ranWhileAway: 0 };
    const run = async (input: string, session_id?: string): Promise<string> => {
      const reply = await service.post(`/v1/agents/${known}/run`, {
        input,
        ...(session_id === undefined ? {} : { session_id }),
      });
      expect([reply.status, reply.body.data?.output]).toEqual([200, `re: ${input}`]);
      turns.push({ session_id: reply.body.data.session_id, input });
      return reply.body.data.session_id as string;
    };
    const converse = async (name: number): Promise<void> => {
      let session_id: string | undefined;
      for (let turn = 0; !state.over; turn += 1) {
        const wasAway = state.away;
        session_id = await run(`${name}-${turn}`, session_id);
        if (wasAway && state.away) state.ranWhileAway += 1;
      }
    };
    const load = Promise.all(Array.from({ length: CLIENTS }, (_, name) => converse(name)));
    await eventually(
      async () => turns.length,
      (count) => count >= 10 * CLIENTS,
    );

    const ready = (): Promise<Reply> => service.get('/health/ready');
    await server.kill();
    const back = sleep(AWAY_MS);
    state.away = true;
    const refused = [
      await service.get('/v1/agents'),
      await service.get(`/v1/agents/${known}`),
      await service.get('/v1/sessions'),
      await service.get(`/v1/sessions/${turns[0]!.session_id}`),
      await service.post(`/v1/agents/${unknown}/run`, { input: 'hi' }),
    ];
    for (const reply of refused) {
      expectFailure(reply, 'store_unavailable');
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    }
    // It says what is known from the last second.
    const told = await eventually(ready, ({ status }) => status !== 200);
    expectFailure(told, 'store_unavailable');
    await sleep(AWAY_MS - SLOW_MS / 2);
    const slow = run('slow');
    await back;
    state.away = false;
    await server.start();
    await eventually(ready, ({ body }) => body.data?.status === 'ready');
    await slow;
    state.over = true;
    await load;
    // An answer does not wait for a projector longer than VISIBILITY_WAIT_MS.
    await eventually(ready, ({ body }) => body.data?.projector.lag_events === 0);

    expect(state.ranWhileAway).toBeGreaterThan(CLIENTS);
    for (const [session_id, own] of Map.groupBy(turns, (turn) => turn.session_id)) {
      const shown = (await service.get(`/v1/sessions/${session_id}?limit=1000`)).body.data;
      expect(shown.status).toBe('idle');
      expect(shown.turns.map((turn: any) => [turn.input, turn.status, turn.output])).toEqual(
        own.map(({ input }) => [input, 'completed', `re: ${input}`]),
      );
    }
    expect((await service.post(`/v1/agents/${unknown}/run`, { input: 'hi' })).status).toBe(200);
  }, 180_000);
}

if (postgres) describe('a service on PostgreSQL', () => suite(postgres));
else withoutPostgres('a service on PostgreSQL');
