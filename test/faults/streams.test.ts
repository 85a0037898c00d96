import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { startEventStoreDbProcess } from '../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { startScriptedModel } from '../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile } from '../support/http/service.ts';
import { openEvents, textIn, type Heard } from '../support/http/sse.ts';
import { size } from '../support/jest/size.ts';
import { testMasterKeyFile } from '../support/stores/masterKeyFile.ts';
import { createTestDatabase } from '../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../support/servers/postgres/postgresServer.ts';
import { eventually } from '../support/processes/operator.ts';
import { startServerProcess } from '../support/processes/serverProcess.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { testSigningKeyFile } from '../support/builders/signingKey.ts';

const CLIENTS = size({ small: 50, full: 500 });
const SHARE_THAT_DROPS = 0.2;
const WORDS = ['plain ', 'größer ', '😀', '👩‍👩‍👧 ', '\n', '"quoted" ', '漢字', '\u0001'];
const pieces = Array.from({ length: 60 }, (_, index) => WORDS[index % WORDS.length]!);
const TEXT = pieces.join('');

/** Two API replicas over the same stores, and a projector. */
async function replicas(serverUrl: string) {
  const folder = await temporaryFolder();
  const model = await startScriptedModel({ pieces, piece_delay_ms: 100 });
  const database = await createTestDatabase(serverUrl);
  const eventStore = await startEventStoreDbProcess({ folder });
  const env = {
    EVENTSTOREDB_URL: eventStore.connectionString,
    DATABASE_URL: database.url,
    MASTER_KEY_FILE: testMasterKeyFile(),
    LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    RATE_LIMIT_PER_SECOND: '10000',
    MAX_RUNS: '2000',
    RUN_TIMEOUT_MS: '120000',
    RUN_WAIT_MS: '60000',
  };
  const processes = ['api,projector', 'api'].map((services) =>
    startServerProcess(env, ['--services', services]),
  );
  return {
    urls: await Promise.all(processes.map(({ ready }) => ready)),
    /** What they logged that is worse than a warning. */
    errors: () => processes.map(({ errors }) => errors()).join(''),
    async close() {
      for (const process of processes) process.kill('SIGTERM');
      const codes = await Promise.all(processes.map(({ exited }) => exited));
      await eventStore.kill();
      await model.close();
      await database.drop();
      await rm(folder, { recursive: true });
      return codes;
    },
  };
}

const headers = { 'x-api-key': TEST_KEY, 'content-type': 'application/json' };

/** What a client has got, and how long after the end of its turn it had the last of it. */
interface Client {
  session_id: string;
  events: Heard[];
  dropped: boolean;
  /** Events of the second connection that came as the other replica's model spoke. */
  liveAfterwards: number;
}

/** Streams a run, and perhaps loses its connection somewhere and goes on at the other replica. */
async function streaming(
  agent: string,
  [url, other]: readonly string[],
  dropAfter: number | undefined,
): Promise<Client> {
  const run = await openEvents(`${url}/v1/agents/${agent}/run`, {
    method: 'POST',
    headers,
    body: '{"input":"hi"}',
  });
  expect(run.status).toBe(200);
  const events: Heard[] = [];
  let session_id = '';
  for await (const event of run.events) {
    events.push(event);
    if (event.event === 'turn.started') ({ session_id } = event.data);
    if (events.length === dropAfter) break;
  }
  run.leave();
  const ended = (): boolean => events.at(-1)!.event === 'turn.completed';
  if (ended()) return { session_id, events, dropped: false, liveAfterwards: 0 };
  const had = events.length;
  // As an EventSource does: again, wherever it is led, behind the last event.
  while (!ended()) {
    const { id } = events.findLast((event) => event.id !== undefined) ?? {};
    const again = openEvents(`${other}/v1/sessions/${session_id}/turns/1/stream`, {
      headers: { ...headers, ...(id !== undefined && { 'last-event-id': id }) },
    });
    // A connection that was not to be had is tried again.
    const rest = await again.catch(() => undefined);
    if (!rest) continue;
    expect(rest.status).toBe(200);
    for await (const event of rest.events) if (event.event !== 'turn.started') events.push(event);
  }
  const liveAfterwards = events
    .slice(had)
    .filter(({ event, data }) => event === 'output.delta' && data.recorded !== true).length;
  return { session_id, events, dropped: true, liveAfterwards };
}

const server = await startPostgresServer();
let onTestFinished: (() => Promise<unknown>) | undefined;

if (server) {
  describe('clients that stream', () => {
    afterEach(async () => void (await onTestFinished?.()));

    test(`end with the recorded text byte for byte, a part of them on another replica (${CLIENTS})`, async () => {
      const { urls, errors, close } = await replicas(server.url);
      onTestFinished = close;
      const api = apiClient(urls[0]!, TEST_KEY);
      const agent = await eventually(
        () => api.post('/v1/agents', { name: 'A', instruction: 'I', model: 'scripted' }),
        ({ status }) => status === 200,
      );
      const agentId = agent.body.data.agent_id as string;
      const drops = Math.round(CLIENTS * SHARE_THAT_DROPS);
      const clients = await Promise.all(
        Array.from({ length: CLIENTS }, async (_, index) => {
          await sleep(index * 5);
          const there = index % 2 === 0 ? urls : urls.toReversed();
          return streaming(agentId, there, index < drops ? 1 + (index % 25) : undefined);
        }),
      );
      expect(clients.filter(({ dropped }) => dropped)).toHaveLength(drops);
      for (const { session_id, events } of clients) {
        const { status, body } = await apiClient(urls[1]!, TEST_KEY).get(
          `/v1/sessions/${session_id}`,
        );
        expect(status).toBe(200);
        expect(body.data.turns[0].output).toBe(TEXT);
        expect(textIn(events)).toBe(TEXT);
        expect(events.at(-1)!.data.data.output).toBe(TEXT);
        expect(events.filter(({ event }) => event === 'turn.completed')).toHaveLength(1);
      }
      // They did not only get the record, but what the other replica's model said, as it came.
      const live = clients.filter(({ dropped, liveAfterwards }) => dropped && liveAfterwards > 0);
      expect(live.length).toBeGreaterThan(drops / 2);
      expect(errors()).not.toMatch(/"level":(50|60)/);
      onTestFinished = undefined;
      expect(await close()).toEqual([0, 0]);
    }, 600_000);
  });
  afterAll(server.close);
} else {
  withoutPostgres('clients that stream');
}
