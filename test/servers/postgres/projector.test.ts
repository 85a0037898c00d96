import { EventEmitter, once } from 'node:events';
import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openPostgresReadModels } from '../../../infra/postgres/readModels/readModels.ts';
import { writerLock } from '../../../infra/postgres/leases/locks.ts';
import { VERSION } from '../../../infra/postgres/readModels/schema.ts';
import { awaitLeaseSession } from '../../../infra/postgres/leases/leaseSession.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import { eventually } from '../../support/processes/operator.ts';
import {
  createTestDatabase,
  cutConnections,
  execute,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import { silenceableNetwork } from '../../support/servers/postgres/silenceableNetwork.ts';
import {
  openActive,
  startPostgresProjector,
} from '../../support/servers/postgres/postgresProjector.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { appendAgents, recordingLogger } from '../../support/stores/projections/projector.ts';
import { agentCreated } from '../../support/builders/events.ts';
import { positionOf, recordHistory, reached } from '../../support/builders/history.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { agentsOf } from '../../support/stores/projections/agentsOf.ts';

const server = await startPostgresServer();
const SOON = 20_000;

function suite(serverUrl: string): void {
  let database: TestDatabase;
  let folder: string;
  let log: EventStore;
  let readModels: ReadModels;

  beforeEach(async () => {
    database = await createTestDatabase(serverUrl);
    folder = await temporaryFolder();
    log = await openSqliteEventStore({ folder });
    readModels = openPostgresReadModels({ databaseUrl: database.url });
  });
  afterEach(async () => {
    await readModels.close();
    await log.close();
    await rm(folder, { recursive: true });
    await database.drop();
  });

  /** A projector whose states are events. */
  function projector() {
    const states = new EventEmitter();
    const { lines, logger } = recordingLogger();
    return {
      ...startPostgresProjector({
        log,
        databaseUrl: database.url,
        logger,
        onState: (state) => states.emit(state),
      }),
      lines,
      becomes: (state: string) => once(states, state),
    };
  }

  const applied = async (): Promise<number> => (await agentsOf(readModels)).length;

  test('one of two projectors is active, and the other one takes over when it stops', async () => {
    const first = projector();
    await first.becomes('active');
    const second = projector();
    let active = false;
    const takesOver = second.becomes('active').then(() => (active = true));
    expect(await readModels.untilShown(await appendAgents(log, 0, 10), SOON)).toBe(true);
    expect(active).toBe(false);
    await first.stop();
    await takesOver;
    expect(await readModels.untilShown(await appendAgents(log, 10, 20), SOON)).toBe(true);
    expect(await applied()).toBe(20);
    await second.stop();
  });

  test('a projector whose connection is cut loses leadership, regains it and goes on from the checkpoint', async () => {
    const alone = projector();
    await alone.becomes('active');
    expect(await readModels.untilShown(await appendAgents(log, 0, 10), SOON)).toBe(true);
    const back = alone.becomes('active');
    expect(await cutConnections(database.url, 'projector')).toBe(1);
    await back;
    expect(await readModels.untilShown(await appendAgents(log, 10, 20, 1), SOON)).toBe(true);
    expect((await agentsOf(readModels)).map(({ revision }) => revision)).toEqual([
      ...Array.from({ length: 10 }, () => 0),
      ...Array.from({ length: 10 }, () => 1),
    ]);
    await alone.stop();
    expect(alone.lines.map(({ message }) => message)).toContain(
      'This projector has lost leadership and stands by',
    );
  });

  test('a projector that another has replaced changes nothing any more, also where a proxy lets both hold the lock', async () => {
    const { record } = recordHistory();
    const created = (id: string) => record({ stream: `agent-${id}` }, agentCreated());
    const replaced = await openActive(database.url);
    await replaced.apply([created('agent_1')], reached(positionOf(1)));
    await replaced.complete();
    await execute(database.url, 'UPDATE turnlog.projections SET epoch = epoch + 1');
    await expect(
      replaced.apply([created('agent_2')], reached(positionOf(2))),
    ).rejects.toMatchObject({
      code: 'store_unavailable',
      message: 'Another projector has taken over.',
    });
    expect(await replaced.checkpoint()).toEqual(reached(positionOf(1)).checkpoint);
    expect(await applied()).toBe(1);
    await replaced.close();
  });

  test('a projector loses its lock as soon as the server hears nothing from it, and says so', async () => {
    const silent = await openActive(database.url);
    const next = openActive(database.url);
    // Blocks this thread, and with it the heartbeat, for longer than the server's patience.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3500);
    const active = await next;
    expect(silent.lost.aborted).toBe(true);
    await expect(silent.apply([], reached(positionOf(1)))).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    await active.apply([], reached(positionOf(1)));
    await silent.close();
    await active.close();
  });

  test('a projector whose network falls silent loses its place to another, and finds out by itself', async () => {
    const network = await silenceableNetwork(database.url);
    const silent = await openActive(network.url);
    const lost = once(silent.lost, 'abort');
    const next = openActive(database.url);
    network.silence();
    const active = await next;
    await active.apply([], reached(positionOf(1)));
    await lost;
    await expect(silent.apply([], reached(positionOf(2)))).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    await silent.close();
    await active.close();
    await network.close();
  });

  test('a projector whose network falls silent while it is sent a long answer loses its place to another', async () => {
    const network = await silenceableNetwork(database.url);
    const open = (databaseUrl: string) =>
      awaitLeaseSession({
        databaseUrl,
        name: 'turnlog projector',
        lock: writerLock(VERSION.number, 'live'),
        signal: new AbortController().signal,
        onFailure: () => undefined,
      });
    const silent = (await open(network.url))!;
    const answer = silent.run((client) =>
      client.query("SELECT pg_sleep(1), repeat('x', 50000000)"),
    );
    const cut = expect(answer).rejects.toThrow();
    await eventually(
      () =>
        execute(
          database.url,
          "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'",
        ),
      (asked) => asked.length > 0,
    );
    network.silence();
    const next = (await open(database.url))!;
    await network.close();
    await cut;
    await silent.close();
    await next.close();
  });

  test('a projector that stands by notices soon that its network has fallen silent, and ends when it is told to', async () => {
    const network = await silenceableNetwork(database.url);
    const active = await openActive(database.url);
    const stopping = new AbortController();
    const failures: unknown[] = [];
    const standing = awaitLeaseSession({
      databaseUrl: network.url,
      name: 'turnlog projector',
      lock: writerLock(VERSION.number, 'live'),
      signal: stopping.signal,
      onFailure: (error) => failures.push(error),
    });
    await eventually(
      () =>
        execute(
          database.url,
          "SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_try_advisory_lock%' AND state = 'idle'",
        ),
      (asked) => asked.length > 0,
    );
    network.cut();
    await eventually(
      async () => failures,
      (found) => found.length > 0,
    );
    stopping.abort();
    expect(await standing).toBeUndefined();
    await active.close();
    await network.close();
  }, 25_000);

  test('an idle projector keeps its place', async () => {
    const idle = await openActive(database.url);
    const waiting = new AbortController();
    const lost = once(idle.lost, 'abort', { signal: waiting.signal });
    // Longer than the server lets a silent session live.
    setTimeout(() => waiting.abort(), 4000);
    await expect(lost).rejects.toMatchObject({ name: 'AbortError' });
    await idle.apply([], reached(positionOf(1)));
    await idle.close();
  });

  test('a projector that stands by ends when it is told to', async () => {
    const active = await openActive(database.url);
    const standing = projector();
    await standing.stop();
    await active.close();
  });

  test('a projector that finds no server goes on trying, and says so', async () => {
    const { openPostgresProjectionStore } =
      await import('../../../infra/postgres/readModels/projectionStore.ts');
    const stopping = new AbortController();
    const failures: number[] = [];
    const store = await openPostgresProjectionStore({
      databaseUrl: 'postgres://nobody@127.0.0.1:1/none',
      signal: stopping.signal,
      onFailure: (_error, retryInMs) => {
        if (failures.push(retryInMs) === 2) stopping.abort();
      },
    });
    expect(store).toBeUndefined();
    expect(failures).toEqual([100, 200]);
  });
}

if (server) {
  describe('PostgreSQL projector', () => suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL projector');
}
