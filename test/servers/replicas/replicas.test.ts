import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { liveSchema, VERSION } from '../../../infra/postgres/readModels/schema.ts';
import { openOperator, type Operator } from '../../../services/compose/operator/operator.ts';
import { startService } from '../../../services/compose/service.ts';
import type { RunningService } from '../../../services/process/start.ts';
import type { ServiceName } from '../../../services/process/serviceNames.ts';
import { issueKey, revokeKey } from '../../../shared/accounts/commands.ts';
import { parseConfig } from '../../../shared/lib/config/config.ts';
import { SCOPES } from '../../../shared/accounts/events.ts';
import { appendEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import { openEvents } from '../../../shared/eventlog/encryption/openTexts.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import {
  startEventStoreDbServer,
  type EventStoreDbServer,
} from '../../support/servers/eventstoredb/eventStoreDbServer.ts';
import { newMarker } from '../../support/stores/erasure/holding.ts';
import { tablesHolding } from '../../support/stores/erasure/tablesHolding.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { sessionStarted, turnStarted } from '../../support/builders/events.ts';
import { eventually } from '../../support/processes/operator.ts';
import {
  createTestDatabase,
  execute,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import {
  startScriptedModel,
  type Script,
  type ScriptedModel,
} from '../../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile, type Client } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { testMasterKeyFile } from '../../support/stores/masterKeyFile.ts';
import { testSigningKeyFile } from '../../support/builders/signingKey.ts';

const SOON = 20_000;
/** How long a replica may use a key without asking again. */
const REMEMBERED_MS = 500;
const SYSTEM = { key_id: 'operator', request_id: 'test' };
const repeating: Script = ({ messages }) => ({ text: `re: ${messages.at(-1)!.content}` });
const postgres = await startPostgresServer();

function suite(serverUrl: string): void {
  let folder: string;
  let database: TestDatabase;
  let eventStore: EventStoreDbServer;
  let model: ScriptedModel;
  let operator: Operator;
  const running: RunningService[] = [];
  let env: Record<string, string>;
  let one: Client;
  let other: Client;
  let projector: RunningService;

  async function start(...services: ServiceName[]): Promise<RunningService> {
    const service = await startService(
      parseConfig(services.includes('relay') ? { ...env, KAFKA_BROKERS: '127.0.0.1:1' } : env),
      createLogger('silent'),
      { services, signal: new AbortController().signal },
    );
    running.push(service);
    return service;
  }

  beforeAll(async () => {
    folder = await temporaryFolder();
    database = await createTestDatabase(serverUrl);
    eventStore = await startEventStoreDbServer();
    model = await startScriptedModel(repeating);
    env = {
      CONSOLE: 'off',
      PORT: '0',
      DATA_DIR: `${folder}/none`,
      EVENTSTOREDB_URL: eventStore.connectionString,
      DATABASE_URL: database.url,
      MASTER_KEY_FILE: testMasterKeyFile(),
      LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
      MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
      BOOTSTRAP_API_KEY: `${TEST_KEY}-${randomUUID()}`,
      VISIBILITY_WAIT_MS: String(SOON),
    };
    const [first, second, third] = await Promise.all([
      start('api'),
      start('api'),
      start('projector'),
    ]);
    projector = third;
    operator = await openOperator(parseConfig(env), createLogger('silent'));
    [one, other] = [
      apiClient(first.url, env['BOOTSTRAP_API_KEY']),
      apiClient(second.url, env['BOOTSTRAP_API_KEY']),
    ];
  }, 180_000);
  afterAll(async () => {
    await operator.close();
    for (const service of running) await service.stop();
    await model.close();
    await eventStore.close();
    await database.drop();
    await rm(folder, { recursive: true });
  });

  const createAgent = async (): Promise<string> =>
    (await one.post('/v1/agents', { name: 'Test', instruction: 'Be brief.', model: 'scripted' }))
      .body.data.agent_id as string;
  const account = async (): Promise<string> =>
    (await (await operator.readModels()).listAccounts())[0]!.account_id;

  test('that start at once on an empty log open one account with one key', async () => {
    const readModels = await operator.readModels();
    expect(await readModels.listAccounts()).toHaveLength(1);
    const page = { limit: 10, bytes: 10_000 };
    expect((await readModels.listApiKeys(await account(), page)).rows).toHaveLength(1);
    expect(await readModels.listParkedStreams(1)).toEqual({ count: 0, streams: [] });
  });

  test('show what was acknowledged by one to whoever asks another, and go on with its sessions', async () => {
    const agent = await createAgent();
    expect((await other.get(`/v1/agents/${agent}`)).status).toBe(200);
    const { session_id } = (await one.post(`/v1/agents/${agent}/run`, { input: 'first' })).body
      .data;
    expect((await other.get(`/v1/sessions/${session_id}`)).body.data.turns).toMatchObject([
      { input: 'first', status: 'completed', output: 're: first' },
    ]);
    expect(
      (await other.post(`/v1/agents/${agent}/run`, { input: 'second', session_id })).status,
    ).toBe(200);
    expect(model.requests.at(-1)!.messages.map(({ content }) => content)).toEqual([
      'Be brief.',
      'first',
      're: first',
      'second',
    ]);
    expect((await one.get(`/v1/sessions/${session_id}`)).body.data.turns).toHaveLength(2);
  });

  test('show the end of a turn to whoever has waited for it at another', async () => {
    const agent = await createAgent();
    model.use({ text: 'late', delay_ms: 500 });
    const begun = await one.post(
      `/v1/agents/${agent}/run`,
      { input: 'x' },
      { prefer: 'respond-async' },
    );
    model.use(repeating);
    const session = `/v1/sessions/${begun.body.data.session_id as string}`;
    // The projector is late with the end.
    const held = execute(
      database.url,
      `DO $$ BEGIN LOCK TABLE ${liveSchema(VERSION)}.turns IN SHARE MODE; PERFORM pg_sleep(2); END $$`,
    );
    const turn = await other.get(`${session}/turns/1`, { prefer: 'wait=30' });
    const read = await other.get(session);
    await held;
    expect(turn.body.data).toMatchObject({ status: 'completed', output: 'late' });
    expect(read.body.data).toMatchObject({ status: 'idle', turns: [turn.body.data] });
  });

  test('run one after the other on a session that both are asked to go on with', async () => {
    const agent = await createAgent();
    const { session_id } = (await one.post(`/v1/agents/${agent}/run`, { input: '0' })).body.data;
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        (index % 2 === 0 ? one : other).post(`/v1/agents/${agent}/run`, {
          input: `${index + 1}`,
          session_id,
        }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const events = (await one.get(`/v1/sessions/${session_id}/events`)).body.data as {
      type: string;
    }[];
    expect(events.map(({ type }) => type).join(' ')).toMatch(
      /^session\.started\.v1( session\.turn_started\.v1 session\.turn_completed\.v1){9}$/,
    );
  });

  test('refuse a revoked key within a second, all of them', async () => {
    const actor = { account_id: await account(), ...SYSTEM };
    const { api_key, key_id } = await issueKey(operator, actor, {
      name: 'to be revoked',
      scopes: SCOPES,
      expiresAt: null,
    });
    const clients = running
      .filter(({ services }) => services.includes('api'))
      .map(({ url }) => apiClient(url, api_key));
    for (const client of clients)
      await eventually(
        () => client.get('/v1/models'),
        ({ status }) => status === 200,
      );
    const revoked = await revokeKey(operator, actor, key_id);
    // The projector's part of that second is short, unless the machine is busy with something else.
    expect(await (await operator.readModels()).untilShown(revoked!, SOON)).toBe(true);
    await sleep(REMEMBERED_MS);
    for (const client of clients) expectFailure(await client.get('/v1/models'), 'unauthorized');
  });

  test('serve a key that one has issued, and let it issue none once one has revoked it', async () => {
    const body = { name: 'manager', scopes: ['keys:write', 'agents:read'] };
    const { api_key, key_id } = (await one.post('/v1/keys', body)).body.data;
    const clients = running
      .filter(({ services }) => services.includes('api'))
      .map(({ url }) => apiClient(url, api_key));
    for (const client of clients) expect((await client.get('/v1/agents')).status).toBe(200);
    expect((await other.send('DELETE', `/v1/keys/${key_id}`, '')).status).toBe(200);
    // At once, although a replica may remember the key for half a second.
    for (const client of clients)
      expectFailure(await client.post('/v1/keys', body), 'unauthorized');
    await sleep(REMEMBERED_MS);
    for (const client of clients) expectFailure(await client.get('/v1/agents'), 'unauthorized');
  });

  test('close a turn that an instance has left open which is silent for 30 s, once, and go on with its session', async () => {
    const agent = await createAgent();
    const session_id = operator.ids.typeId('session');
    await execute(
      database.url,
      "INSERT INTO turnlog.instances VALUES ('dead', now() - interval '5 minutes', now() - interval '40 seconds')",
    );
    const deadline = new Date(Date.now() + 600_000).toISOString();
    const events = [sessionStarted(agent), turnStarted(1, { owner: 'dead', deadline })];
    const authorship = {
      account_id: await account(),
      ...SYSTEM,
      causation_id: 'test',
      recorded_at: new Date().toISOString(),
    };
    await appendEvents(
      operator.store,
      { stream: sessionStream(session_id), head: NO_STREAM },
      { events: events.map((event) => ({ id: randomUUID(), ...event })), authorship },
    );

    const shown = () => other.get(`/v1/sessions/${session_id}`);
    const closed = await eventually(
      shown,
      ({ body }) => body.data?.status === 'idle' && body.data.turns.length > 0,
    );
    expect(closed.body.data.turns).toMatchObject([
      { turn: 1, status: 'interrupted', error: { code: 'turn_interrupted', reason: 'crash' } },
    ]);
    const { status, body } = await one.post(`/v1/agents/${agent}/run`, { input: 'on', session_id });
    expect([status, body.data?.output]).toEqual([200, 're: on']);
    const types = (
      (await one.get(`/v1/sessions/${session_id}/events`)).body.data as { type: string }[]
    ).map(({ type }) => type);
    expect(types.filter((type) => type === 'session.turn_interrupted.v1')).toHaveLength(1);
  }, 60_000);

  test('erase a session for each other: its run ends, no memory has it, and no table holds a text of it', async () => {
    const marker = newMarker();
    const agent = await createAgent();
    const run = (client: Client, session_id?: string) =>
      client.post(`/v1/agents/${agent}/run`, {
        input: `tell ${marker}`,
        ...(session_id && { session_id }),
      });
    const { session_id } = (await run(other)).body.data;
    // The other one has the session and its key in memory from now on.
    expect((await run(other, session_id)).status).toBe(200);
    const recorded = () =>
      operator.store.readStream(sessionStream(session_id), { direction: 'forwards', limit: 100 });
    const [, box] = /"box":"[\w-]{16}\.([\w-]+)"/.exec((await recorded())[1]!.data)!;
    // The read models have the texts as the log has them.
    expect(await tablesHolding(database.url, box!)).not.toEqual([]);
    expect(await tablesHolding(database.url, marker)).toEqual([]);
    const asked = model.requests.length;
    model.use({ fault: 'never_answer' });
    const cutOff = run(other, session_id);
    await model.received(asked + 1);
    const path = `/v1/sessions/${session_id}`;
    const erased = await Promise.all([one, other, one].map((c) => c.send('DELETE', path, '')));
    expect(erased.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(erased.map(({ body }) => body.data.event.id)).size).toBe(1);
    expectFailure(await cutOff, 'session_erased');
    model.use(repeating);
    for (const client of [one, other]) {
      expectFailure(await client.get(path), 'session_erased');
      expectFailure(await client.get(`${path}/events`), 'session_erased');
      expectFailure(await run(client, session_id), 'session_erased');
    }
    for (const text of [marker, box!]) expect(await tablesHolding(database.url, text)).toEqual([]);
    const stored = await recorded();
    expect(stored.filter(({ type }) => type === 'session.erased.v1')).toHaveLength(1);
    const texts = await openEvents(operator.store.keys, stored);
    expect(texts.filter(({ erased: gone }) => gone).length).toBeGreaterThan(0);
    expect(JSON.stringify([stored, texts])).not.toContain(marker);
  }, 60_000);

  test('keep nothing in a data folder', () => {
    expect(existsSync(env['DATA_DIR']!)).toBe(false);
  });

  test('leave the list of instances when they stop in order', async () => {
    const count = async (): Promise<unknown> =>
      (await execute(database.url, 'SELECT count(*)::int AS n FROM turnlog.instances'))[0]!['n'];
    const before = await count();
    const third = await start('api');
    expect(await count()).toBe((before as number) + 1);
    await running.splice(running.indexOf(third), 1)[0]!.stop();
    expect(await count()).toBe(before);
  });

  test('have a projector that tells its state and its lag, and serves nothing else', async () => {
    const stranger = apiClient(projector.url, undefined);
    expect((await stranger.get('/health/live')).body).toEqual({
      success: true,
      data: { status: 'live' },
      status: 200,
    });
    const { body } = await eventually(
      () => stranger.get('/health/ready'),
      ({ body: { data } }) =>
        data?.projector.lag_events === 0 &&
        data.projection.lag_events === 0 &&
        data.transparency_log.size > 0,
    );
    expect(body.data).toEqual({
      status: 'ready',
      projection: { caught_up: true, lag_events: 0, lag_ms: 0, parked_streams: [] },
      projector: { state: 'active', lag_events: 0, lag_ms: 0 },
      transparency_log: expect.objectContaining({ state: 'active' }),
      webhooks: { state: 'active', enabled: 0, failing: 0 },
    });
    expectFailure(await stranger.get('/v1/agents'), 'not_found');
    const standby = await start('projector');
    expect(
      (await apiClient(standby.url, undefined).get('/health/ready')).body.data.projector,
    ).toEqual({ state: 'standing_by', lag_events: null, lag_ms: null });
  });

  test('have a relay that tells its state, also while no broker can be reached', async () => {
    const { url } = await start('relay');
    const { body } = await eventually(
      () => apiClient(url, undefined).get('/health/ready'),
      (reply) => reply.body.data?.relay?.state === 'retrying',
    );
    expect(body.data).toEqual({
      status: 'degraded',
      relay: {
        state: 'retrying',
        lag_ms: expect.any(Number),
        reason: expect.stringContaining('ECONNREFUSED'),
      },
    });
  });

  test('answer from read models that were rebuilt beside them', async () => {
    const agent = await createAgent();
    await execute(database.url, `UPDATE ${liveSchema(VERSION)}.agents SET name = 'spoilt'`);
    expect(await operator.rebuild(new AbortController().signal, () => undefined)).toBe(true);
    for (const client of [one, other])
      expect((await client.get(`/v1/agents/${agent}`)).body.data.name).toBe('Test');
  });
}

if (postgres) {
  describe('replicas', () => suite(postgres.url));
  afterAll(postgres.close);
} else {
  withoutPostgres('replicas');
}
