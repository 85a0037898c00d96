import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { openAccount } from '../../../shared/accounts/commands.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { freePort } from '../../support/processes/freePort.ts';
import { holdProjection } from '../../support/stores/projections/heldProjection.ts';
import { asOperator, eventually } from '../../support/processes/operator.ts';
import { startScriptedModel, type ScriptedModel } from '../../support/fakes/scriptedModel.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import { apiClient, TEST_KEY, writeModelsFile, type Client } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

/** A signal within a second of the first one is the same request; and a moment. */
const SAME_REQUEST_MS = 1_100;

let folder: string;
let data: string;
let model: ScriptedModel;
let env: Record<string, string>;
let servers: ServerProcess[];

beforeEach(async () => {
  folder = await temporaryFolder();
  data = join(folder, 'data');
  model = await startScriptedModel({ text: 'Hello.' });
  env = {
    DATA_DIR: data,
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'warn',
  };
  servers = [];
});
afterEach(async () => {
  for (const server of servers) server.kill('SIGKILL');
  await Promise.all(servers.map(({ exited }) => exited));
  await model.close();
  await rm(folder, { recursive: true });
});

function spawnServer(more: Record<string, string> = {}): ServerProcess {
  const server = startServerProcess({ ...env, ...more });
  servers.push(server);
  return server;
}

async function start(
  more: Record<string, string> = {},
): Promise<{ server: ServerProcess; url: string; client: Client }> {
  const server = spawnServer(more);
  const url = await server.ready;
  return { server, url, client: apiClient(url, TEST_KEY) };
}

const newAgent = async (client: Client): Promise<string> =>
  (await client.post('/v1/agents', { name: 'Test', instruction: 'Be brief.', model: 'scripted' }))
    .body.data.agent_id as string;
const run = (client: Client, agent: string, input: string, session_id?: string) =>
  client.post(`/v1/agents/${agent}/run`, { input, ...(session_id && { session_id }) });
const turnsOf = async (client: Client, session: string) =>
  (await client.get(`/v1/sessions/${session}`)).body.data.turns as {
    status: string;
    error: unknown;
  }[];
const refusesConnections = (url: string): Promise<boolean> =>
  eventually(
    () =>
      fetch(url).then(
        () => false,
        () => true,
      ),
    Boolean,
  );

describe('SIGTERM', () => {
  test('refuses what is new, lets a run in flight finish and be answered, and ends with exit code 0', async () => {
    const { server, url, client } = await start();
    const agent = await newAgent(client);
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    model.use(async () => {
      await gate;
      return { text: 'in time' };
    });
    const inFlight = run(client, agent, 'long');
    await model.received(1);
    const half = connect(Number(new URL(url).port), '127.0.0.1');
    half.write('GET /v1/models HTTP/1.1\r\nhost: x\r\n');
    // The server has read the half request once it has answered one that was sent later.
    await client.get('/health/live');

    server.kill('SIGTERM');
    await refusesConnections(url);
    half.write(`x-api-key: ${TEST_KEY}\r\n\r\n`);
    const [late] = (await once(half, 'data')) as [Buffer];
    expect(late.toString()).toMatch(
      /^HTTP\/1.1 503 .*connection: close.*"code":"store_unavailable"/is,
    );

    open();
    const { status, body } = await inFlight;
    expect([status, body.data.output]).toEqual([200, 'in time']);
    expect(await server.exited).toBe(0);
    const again = await start();
    expect(await turnsOf(again.client, body.data.session_id as string)).toEqual([
      expect.objectContaining({ status: 'completed', output: 'in time' }),
    ]);
  });

  test('with DRAIN_MS serves on, on new connections too, and is not ready, until the time is over', async () => {
    const { server, client } = await start({ DRAIN_MS: '5000' });
    const agent = await newAgent(client);
    const began = performance.now();
    server.kill('SIGTERM');
    const ready = await eventually(
      () => client.get('/health/ready'),
      ({ status }) => status === 503,
    );
    expect(ready.body.error).toContain('about to shut down');
    const { status, headers, body } = await run(client, agent, 'late');
    expect([status, headers.get('connection'), body.data.output]).toEqual([200, 'close', 'Hello.']);
    expect(await server.exited).toBe(0);
    expect(performance.now() - began).toBeGreaterThan(4_900);
  });

  test('a second signal ends a drain at once', async () => {
    const { server, client } = await start({ DRAIN_MS: '600000' });
    server.kill('SIGTERM');
    await eventually(
      () => client.get('/health/ready'),
      ({ status }) => status === 503,
    );
    await sleep(SAME_REQUEST_MS);
    server.kill('SIGTERM');
    expect(await server.exited).toBeNull();
  });

  test('records a run that takes longer than the grace time as interrupted, answers it 503, and the session goes on after a restart', async () => {
    const { server, client } = await start({ SHUTDOWN_GRACE_MS: '200' });
    const agent = await newAgent(client);
    const { session_id } = (await run(client, agent, 'first')).body.data;
    model.use({ fault: 'never_answer' });
    const inFlight = run(client, agent, 'second', session_id);
    await model.received(2);
    const waiting = run(client, agent, 'third', session_id);
    await eventually(
      () => client.get('/health/ready'),
      ({ body }) => body.data.runs_in_flight === 1 && body.data.runs_waiting === 1,
    );

    server.kill('SIGTERM');
    const [cut, refused] = await Promise.all([inFlight, waiting]);
    expect(expectFailure(cut, 'turn_interrupted').error).toContain('shut down');
    expect(expectFailure(refused, 'store_unavailable').error).toContain('shutting down');
    for (const { headers } of [cut, refused]) expect(headers.get('retry-after')).toBe('1');
    expect(await server.exited).toBe(0);

    model.use({ text: 'fourth' });
    const again = await start();
    expect(await turnsOf(again.client, session_id)).toEqual([
      expect.objectContaining({ status: 'completed' }),
      expect.objectContaining({
        status: 'interrupted',
        input: 'second',
        error: {
          code: 'turn_interrupted',
          reason: 'shutdown',
          retry: 'new_key',
          message: expect.stringContaining('shut down'),
        },
      }),
    ]);
    const events = (await again.client.get(`/v1/sessions/${session_id}/events`)).body.data;
    expect(events.at(-1)).toMatchObject({
      type: 'session.turn_interrupted.v1',
      data: { turn: 2, reason: 'crash', cause: 'shutdown' },
    });
    expect((await run(again.client, agent, 'fourth', session_id)).status).toBe(200);
    expect(model.requests.at(-1)!.messages.map(({ role, content }) => [role, content])).toEqual([
      ['system', 'Be brief.'],
      ['user', 'first'],
      ['assistant', 'Hello.'],
      ['user', 'fourth'],
    ]);
  });

  test('twice ends the process at once', async () => {
    const { server, url, client } = await start({ SHUTDOWN_GRACE_MS: '60000' });
    model.use({ fault: 'never_answer' });
    const inFlight = run(client, await newAgent(client), 'x').catch(() => 'cut off');
    await model.received(1);
    server.kill('SIGTERM');
    await refusesConnections(url);
    // At once, it is the same request: npm passes on a signal that the terminal sends, too.
    server.kill('SIGTERM');
    await sleep(SAME_REQUEST_MS);
    server.kill('SIGTERM');
    expect(await server.exited).toBeNull();
    expect(await inFlight).toBe('cut off');
  });

  test('while the service still starts ends it with exit code 0', async () => {
    const first = await start();
    first.server.kill('SIGTERM');
    expect(await first.server.exited).toBe(0);
    await asOperator(data, (operator) =>
      openAccount(
        operator,
        { account_id: 'acct_later', key_id: 'operator', request_id: 'test' },
        'later',
      ),
    );
    const release = holdProjection(data);
    const port = await freePort();
    const server = spawnServer({ PORT: String(port) });
    await eventually(
      () =>
        fetch(`http://127.0.0.1:${port}/health/live`).then(
          ({ ok }) => ok,
          () => false,
        ),
      Boolean,
    );
    server.kill('SIGTERM');
    expect(await server.exited).toBe(0);
    release();
    expect((await (await start()).client.get('/health/ready')).status).toBe(200);
  });
});

describe('SIGKILL in the middle of a run', () => {
  test('leaves a turn that is interrupted after the restart, at once and for every reader, and the next messages alternate', async () => {
    const { server, client } = await start();
    const agent = await newAgent(client);
    const { session_id } = (await run(client, agent, 'first')).body.data;
    model.use({ fault: 'never_answer' });
    const lost = run(client, agent, 'second', session_id).catch(() => 'cut off');
    await model.received(2);
    server.kill('SIGKILL');
    expect([await server.exited, await lost]).toEqual([null, 'cut off']);

    model.use({ text: 'third' });
    const again = await start();
    expect(
      (await turnsOf(again.client, session_id)).map(({ status, error }) => [status, error]),
    ).toEqual([
      ['completed', null],
      ['interrupted', expect.objectContaining({ code: 'turn_interrupted', reason: 'crash' })],
    ]);
    expect((await run(again.client, agent, 'third', session_id)).body.data.output).toBe('third');
    expect(model.requests.at(-1)!.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
    ]);
    expect((await turnsOf(again.client, session_id)).map(({ status }) => status)).toEqual([
      'completed',
      'interrupted',
      'completed',
    ]);
  });
});

test('a log that, with its keys and its tree, is all that is left of a data folder has its open turns interrupted too', async () => {
  const { server, client } = await start();
  const agent = await newAgent(client);
  const { session_id } = (await run(client, agent, 'first')).body.data;
  model.use({ fault: 'never_answer' });
  const lost = run(client, agent, 'second', session_id).catch(() => 'cut off');
  await model.received(2);
  server.kill('SIGKILL');
  expect([await server.exited, await lost]).toEqual([null, 'cut off']);

  for (const name of await readdir(data))
    if (!/^(events|keys)\.db|^master\.key$|^tlog$|^log-signing-key\.pem$/.test(name))
      await rm(join(data, name), { recursive: true });
  model.use({ text: 'third' });
  const again = await start();
  expect(
    (await turnsOf(again.client, session_id)).map(({ status, error }) => [status, error]),
  ).toEqual([
    ['completed', null],
    ['interrupted', expect.objectContaining({ code: 'turn_interrupted', reason: 'crash' })],
  ]);
  expect((await run(again.client, agent, 'third', session_id)).status).toBe(200);
});

describe('a server that can not start ends with exit code 1 and one clear message', () => {
  test('when another one runs on the data folder, which goes on', async () => {
    const { client } = await start();
    const second = spawnServer();
    expect(await second.exited).toBe(1);
    expect(second.errors()).toMatch(
      /^Another Turnlog server is running on the data folder \S+\. .*DATA_DIR.*\n$/,
    );
    expect((await client.get('/health/ready')).status).toBe(200);
  });

  test('when its port is in use', async () => {
    const { url } = await start();
    const { port } = new URL(url);
    const second = spawnServer({ PORT: port, DATA_DIR: join(folder, 'other') });
    expect(await second.exited).toBe(1);
    expect(second.errors()).toBe(
      `The address 127.0.0.1:${port} is in use. Set PORT to another port, or 0 for a free one.\n`,
    );
  });

  test('when its configuration has problems: all of them together, and none of the values', async () => {
    const bad = {
      PORT: 'eighty',
      LOG_LEVEL: 'shouting',
      BOOTSTRAP_API_KEY: 'tooshort',
      RUN_TIMEOUT_MS: '-5',
      OPENAI_BASE_URL: 'ftp://secret.example',
    };
    const server = spawnServer(bad);
    expect(await server.exited).toBe(1);
    for (const name of Object.keys(bad)) expect(server.errors()).toContain(`\n  ${name} must`);
    for (const value of Object.values(bad)) expect(server.errors()).not.toContain(value);
    expect(server.errors()).toMatch(/^The configuration has 5 problems:\n/);
  });

  test.each([
    ['is below a file', () => join(env['MODELS_FILE']!, 'below-a-file')],
    ['is a file', () => env['MODELS_FILE']!],
    // Node.js itself would try for ever to make it, and hear no signal.
    ['is where the file system takes no folder', () => '/proc/turnlog/data'],
    ['is there, and takes no file', () => '/proc'],
  ])('when its data folder %s', async (_how, place) => {
    const server = spawnServer({ DATA_DIR: place() });
    expect(await server.exited).toBe(1);
    expect(server.errors()).toMatch(/^The data folder \S+ can't be used: .*\. Set DATA_DIR .*\n$/);
  });

  test('when KAFKA_START_AFTER can be no position of its log', async () => {
    const server = spawnServer({ KAFKA_BROKERS: '127.0.0.1:9', KAFKA_START_AFTER: 'zzz' });
    expect(await server.exited).toBe(1);
    expect(server.errors()).toMatch(
      /^KAFKA_START_AFTER names no position\. zzz is .* 16 digits.*\n$/,
    );
  });
});

test('a server whose log takes no event for now goes on starting until it does', async () => {
  await (await openSqliteEventStore({ folder: data })).close();
  // The server may hold the log's lock at the moment: it tries again and again.
  const log = new DatabaseSync(join(data, 'events.db'), { timeout: 5_000 });
  log.exec(
    "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(FAIL, 'refused by a test'); END",
  );
  const server = spawnServer();
  await eventually(
    () => Promise.resolve(server.errors()),
    (errors) => errors.includes('"level":"warn"'),
  );
  log.exec('DROP TRIGGER full');
  log.close();
  const client = apiClient(await server.ready, TEST_KEY);
  expect((await client.get('/v1/agents')).body).toEqual({ success: true, data: [], status: 200 });
});
