/** Requests that come again and again, while connections are cut and replicas are killed. */
import { randomUUID } from 'node:crypto';
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
import { startReplicas } from '../support/processes/replicas.ts';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { TEST_KEY, writeModelsFile, type Client, type Reply } from '../support/http/service.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../support/jest/size.ts';
import { testMasterKeyFile } from '../support/stores/masterKeyFile.ts';
import { testSigningKeyFile } from '../support/builders/signingKey.ts';

const KEYS = size({ small: 100, full: 1_000 });
const REQUESTS_OF_KEY = 10;
const AT_ONCE = 40;
/** Half of the keys run in sessions that several of them share; the others begin one each. */
const SHARED_SESSIONS = 10;
/** Of the requests, so many have their connection cut before the answer. */
const CUT = 0.3;
const KILLS = size({ small: 6, full: 60 });
const KILL_EVERY_MS = 2_500;
/** A dead owner's turn is not closed before 30 s. */
const ANSWERED_WITHIN_MS = 120_000;
/** What records nothing, or is about a replica: the same request is to be sent again. */
const AGAIN = [
  'store_unavailable',
  'session_busy',
  'idempotency_in_progress',
  'overloaded',
  'rate_limited',
];
const postgres = await startPostgresServer();

interface Keyed {
  key: string;
  body: { input: string; session_id?: string };
  /** Requests still to be sent. */
  left: number;
}

const inputOf = ({ messages }: ChatRequest): string => messages.at(-1)!.content ?? '';
const anyOf = <Item>(items: readonly Item[]): Item =>
  items[Math.floor(Math.random() * items.length)]!;

function suite(serverUrl: string): void {
  let folder: string;
  let database: TestDatabase;
  let eventStore: EventStoreDbProcess;
  let model: ScriptedModel;
  let replicas: ReturnType<typeof startReplicas>;
  const calls = new Map<string, number>();
  const answers = new Map<string, Set<string>>();
  const unexpected: string[] = [];
  const counts = { sent: 0, cut: 0, again: 0, replayed: 0, killed: 0 };

  beforeAll(async () => {
    folder = await temporaryFolder();
    database = await createTestDatabase(serverUrl);
    eventStore = await startEventStoreDbProcess({ folder });
    model = await startScriptedModel((request) => {
      calls.set(inputOf(request), (calls.get(inputOf(request)) ?? 0) + 1);
      return { text: `re: ${inputOf(request)} ${randomUUID()}`, delay_ms: Math.random() * 200 };
    });
    const env = {
      EVENTSTOREDB_URL: eventStore.connectionString,
      DATABASE_URL: database.url,
      MASTER_KEY_FILE: testMasterKeyFile(),
      LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
      MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
      BOOTSTRAP_API_KEY: TEST_KEY,
      LOG_LEVEL: 'error',
      RUN_WAIT_MS: '2000',
    };
    replicas = startReplicas(env, ['api', 'api', 'projector']);
    await replicas.ready();
  }, 120_000);
  afterAll(async () => {
    await replicas.stop();
    await model.close();
    await eventStore.kill('SIGTERM');
    await database.drop();
    await rm(folder, { recursive: true });
  });

  const send = (path: string, { key, body }: Keyed, client: Client): Promise<Reply> =>
    client.post(path, body, { 'idempotency-key': `"${key}"` });

  /** Sends a request until it is answered with what was recorded; undefined where that took too long. */
  async function untilAnswered(path: string, keyed: Keyed): Promise<Reply | undefined> {
    const until = performance.now() + ANSWERED_WITHIN_MS;
    while (performance.now() < until) {
      const clients = replicas.clients();
      const reply =
        clients.length === 0
          ? undefined
          : await send(path, keyed, anyOf(clients)).catch(() => undefined);
      if (reply && !AGAIN.includes(reply.body.code ?? '')) return reply;
      counts.again += 1;
      await sleep(50);
    }
    return undefined;
  }

  /** Sends a request, and cuts the connection before it is answered, or just then. */
  async function sendAndLeave(path: string, { key, body }: Keyed): Promise<void> {
    const urls = replicas.urls();
    if (urls.length === 0) return;
    const signal = AbortSignal.timeout(Math.ceil(Math.random() * 300));
    const headers = {
      'x-api-key': TEST_KEY,
      'content-type': 'application/json',
      'idempotency-key': key,
    };
    const sent = { method: 'POST', headers, body: JSON.stringify(body), signal };
    await fetch(anyOf(urls) + path, sent)
      .then((response) => response.text())
      .catch(() => undefined);
  }

  async function sendOne(path: string, keyed: Keyed): Promise<void> {
    keyed.left -= 1;
    counts.sent += 1;
    // The last one of each key is answered.
    if (keyed.left > 0 && Math.random() < CUT) {
      counts.cut += 1;
      return sendAndLeave(path, keyed);
    }
    const reply = await untilAnswered(path, keyed);
    const { status, body, headers } = reply ?? {};
    if (headers?.get('idempotency-replayed') === 'true') counts.replayed += 1;
    if (status !== 200 && body?.code !== 'turn_interrupted')
      unexpected.push(`${status} ${body?.code} ${body?.error}`);
    const { request_id: _, ...answer } = body ?? {};
    answers.set(keyed.key, (answers.get(keyed.key) ?? new Set()).add(JSON.stringify(answer)));
  }

  async function inputsRecorded(client: Client): Promise<string[]> {
    const inputs: string[] = [];
    for (let next: string | undefined = '/v1/sessions?limit=100'; next !== undefined;) {
      const { body, headers } = await client.get(next);
      for (const { session_id } of body.data) {
        const { turns } = (await client.get(`/v1/sessions/${session_id}`)).body.data;
        inputs.push(...turns.map(({ input }: { input: string }) => input));
      }
      next = /^<([^>]+)>/.exec(headers.get('link') ?? '')?.[1];
    }
    return inputs;
  }

  test(
    `${KEYS * REQUESTS_OF_KEY} requests with ${KEYS} keys come to ${KEYS} turns, each with one answer for all`,
    async () => {
      const [client] = replicas.clients();
      const agent = { name: 'Repeats', instruction: 'Repeat.', model: 'scripted' };
      const path = `/v1/agents/${(await client!.post('/v1/agents', agent)).body.data.agent_id}/run`;
      const sessions: string[] = [];
      for (let shared = 0; shared < SHARED_SESSIONS; shared += 1)
        sessions.push((await client!.post(path, { input: 'begin' })).body.data.session_id);
      const all = Array.from({ length: KEYS }, (_, index): Keyed => {
        const input = `input-${index}`;
        const session_id = anyOf(sessions);
        const body = index % 2 === 0 ? { input } : { input, session_id };
        return { key: randomUUID(), body, left: REQUESTS_OF_KEY };
      });

      const over = new AbortController();
      const killing = (async () => {
        while (counts.killed < KILLS) {
          await sleep(KILL_EVERY_MS, undefined, { signal: over.signal }).catch(() => undefined);
          // One that is starting is not killed: a busy machine would have none that serves.
          await replicas.ready();
          if (over.signal.aborted) return;
          await replicas.killAny(Math.random() * 500);
          counts.killed += 1;
        }
      })();
      try {
        await Promise.all(
          Array.from({ length: AT_ONCE }, async () => {
            for (let open = all; open.length > 0; open = all.filter(({ left }) => left > 0))
              await sendOne(path, anyOf(open));
          }),
        );
      } finally {
        over.abort();
        await killing;
      }
      await replicas.ready();

      expect(unexpected).toEqual([]);
      expect(counts.sent).toBe(KEYS * REQUESTS_OF_KEY);
      expect(Math.min(counts.killed, counts.cut, counts.replayed)).toBeGreaterThan(0);
      expect([...answers.values()].filter((each) => each.size !== 1)).toEqual([]);
      expect(answers.size).toBe(KEYS);
      const recorded = await inputsRecorded(replicas.clients()[0]!);
      const expected = all.map(({ body }) => body.input);
      expect(recorded.filter((input) => input !== 'begin').toSorted()).toEqual(expected.toSorted());
      for (const { key, body } of all) {
        const made = calls.get(body.input) ?? 0;
        const isCompleted = [...answers.get(key)!][0]!.includes('"success":true');
        // A turn that was cut off may have had its call, or not yet.
        expect({ input: body.input, made }).toEqual({
          input: body.input,
          made: isCompleted ? 1 : Math.min(made, 1),
        });
      }
      expect(replicas.failures).toEqual([]);
    },
    size({ small: 400_000, full: 1_800_000 }),
  );
}

if (postgres) {
  describe('keyed requests to two replicas', () => suite(postgres.url));
  afterAll(postgres.close);
} else {
  withoutPostgres('keyed requests to two replicas');
}
