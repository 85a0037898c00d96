import { readdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Client } from 'pg';
import { openPostgresReadModels } from '../../../infra/postgres/readModels/readModels.ts';
import type { ActiveProjectionStore, ReadModels } from '../../../shared/ports/readModels.ts';
import {
  createTestDatabase,
  cutConnections,
  execute,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import { heldAnswers } from '../../support/servers/postgres/heldAnswers.ts';
import { eventually } from '../../support/processes/operator.ts';
import { silenceableNetwork } from '../../support/servers/postgres/silenceableNetwork.ts';
import { openActive } from '../../support/servers/postgres/postgresProjector.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { VERSION } from '../../../infra/postgres/readModels/schema.ts';
import { agentCreated, agentErased } from '../../support/builders/events.ts';
import { positionOf, recordHistory, reached } from '../../support/builders/history.ts';
import { agentsOf, ALL } from '../../support/stores/projections/agentsOf.ts';

const server = await startPostgresServer();
const SOON = 20_000;
const MIGRATIONS = new URL('../../../infra/postgres/migrations/', import.meta.url);

function suite(serverUrl: string): void {
  let database: TestDatabase;
  let opened: { close: () => Promise<void> }[];
  let history: ReturnType<typeof recordHistory>;

  beforeEach(async () => {
    database = await createTestDatabase(serverUrl);
    opened = [];
    history = recordHistory();
  });
  afterEach(async () => {
    for (const { close } of opened.toReversed()) await close();
    await database.drop();
  });

  const closeLater = <Opened extends { close: () => Promise<void> }>(thing: Opened): Opened => {
    opened.push(thing);
    return thing;
  };
  const openStore = async (): Promise<ActiveProjectionStore> =>
    closeLater(await openActive(database.url));
  const openReplica = (): ReadModels =>
    closeLater(openPostgresReadModels({ databaseUrl: database.url }));
  const created = (id: string, changes = {}) =>
    history.record({ stream: `agent-${id}` }, agentCreated(changes));

  test('queries are refused as unavailable before there is a projector, and answered once it has caught up', async () => {
    const replica = openReplica();
    await expect(replica.listAccounts()).rejects.toMatchObject({
      code: 'store_unavailable',
      retriable: true,
    });
    const store = await openStore();
    await expect(replica.listAccounts()).rejects.toMatchObject({ code: 'store_unavailable' });
    await store.complete();
    expect(await replica.listAccounts()).toEqual([]);
  });

  test('queries and opening are refused as unavailable where there is no server', async () => {
    const replica = closeLater(
      openPostgresReadModels({ databaseUrl: 'postgres://nobody@127.0.0.1:1/none' }),
    );
    await expect(replica.findAgent('agent_1')).rejects.toMatchObject({
      code: 'store_unavailable',
      retriable: true,
      retryAfterSeconds: 1,
    });
    expect(await replica.untilShown(positionOf(1), 5)).toBe(false);
  });

  test("pages go in the order of the ids' bytes, whatever the database's collation", async () => {
    const ids = ['agent_B', 'agent_a', 'agent__', 'agent_1', 'agent_Z', 'agent_z'];
    const store = await openStore();
    await store.apply(
      ids.map((id) => created(id)),
      reached(positionOf(6)),
    );
    await store.complete();
    const found: string[] = [];
    for (let after = ''; ; after = found.at(-1)!) {
      const { rows: page } = await openReplica().listAgents('acct_1', { ...ALL, limit: 2, after });
      if (page.length === 0) break;
      found.push(...page.map(({ agent_id }) => agent_id));
    }
    expect(found).toEqual(ids.toSorted());
  });

  test('an event with a text that PostgreSQL cannot hold parks its stream and no other', async () => {
    const store = await openStore();
    expect(
      await store.apply(
        [created('agent_1', { name: 'a\0b' }), created('agent_2')],
        reached(positionOf(2)),
      ),
    ).toMatchObject([{ stream: 'agent-agent_1', revision: 0 }]);
    await store.complete();
    expect((await agentsOf(openReplica())).map(({ agent_id }) => agent_id)).toEqual(['agent_2']);
  });

  test('a batch whose rows need several statements is applied whole', async () => {
    const store = await openStore();
    const instruction = 'x'.repeat(900_000);
    await store.apply(
      Array.from({ length: 40 }, (_, index) => created(`agent_${index + 10}`, { instruction })),
      reached(positionOf(40)),
    );
    await store.complete();
    const agents = await agentsOf(openReplica());
    expect(agents.map((agent) => agent.instruction.length)).toEqual(
      Array.from({ length: 40 }, () => 900_000),
    );
  });

  test('a wait on any replica ends when another process has applied the position, and the row can be read there then', async () => {
    const store = await openStore();
    await store.complete();
    const replicas = [openReplica(), openReplica(), openReplica()];
    for (let index = 1; index <= 20; index += 1) {
      const seen = replicas.map(async (replica) => {
        expect(await replica.untilShown(positionOf(index), SOON)).toBe(true);
        return replica.findAgent(`agent_${index}`);
      });
      await store.apply([created(`agent_${index}`)], reached(positionOf(index)));
      expect((await Promise.all(seen)).map((agent) => agent?.agent_id)).toEqual(
        replicas.map(() => `agent_${index}`),
      );
    }
  });

  test('a wait ends although the connection that listens was cut before its position was told', async () => {
    const store = await openStore();
    await store.complete();
    const replica = openReplica();
    await store.apply([created('agent_1')], reached(positionOf(1)));
    expect(await replica.untilShown(positionOf(1), SOON)).toBe(true);
    const wait = replica.untilShown(positionOf(2), SOON);
    expect(await cutConnections(database.url, 'listener')).toBe(1);
    await store.apply([created('agent_2')], reached(positionOf(2)));
    expect(await wait).toBe(true);
  });

  test('a wait ends although its position is told together with the answer that there is none yet', async () => {
    const store = await openStore();
    await store.complete();
    const network = closeLater(
      await heldAnswers(database.url, 'SELECT position, log_changed FROM'),
    );
    const replica = closeLater(openPostgresReadModels({ databaseUrl: network.url }));
    const wait = replica.untilShown(positionOf(1), 3_000);
    await eventually(network.held, (said) => said.includes('SELECT 1'));
    await store.apply([created('agent_1')], reached(positionOf(1)));
    await eventually(network.held, (said) => said.includes(positionOf(1)));
    network.release();
    expect(await wait).toBe(true);
    // Whoever asks once the answer was looked at as well finds it shown, too.
    await sleep(100);
    expect(await replica.untilShown(positionOf(1), 1_000)).toBe(true);
  });

  test('a wait ends although the network of the connection that listens has fallen silent', async () => {
    const store = await openStore();
    await store.complete();
    const network = closeLater(await silenceableNetwork(database.url));
    const replica = closeLater(openPostgresReadModels({ databaseUrl: network.url }));
    await store.apply([created('agent_1')], reached(positionOf(1)));
    expect(await replica.untilShown(positionOf(1), SOON)).toBe(true);
    network.silence();
    await store.apply([created('agent_2')], reached(positionOf(2)));
    expect(await replica.untilShown(positionOf(2), SOON)).toBe(true);
  });

  test('what the active projector tells of itself is read with its age, and goes with its version', async () => {
    const replica = closeLater(openPostgresReadModels({ databaseUrl: database.url }));
    const store = await openStore();
    expect(await replica.projectorBeat()).toBeUndefined();
    await store.beat({ events: null, ms: 7 });
    await store.beat({ events: 3, ms: 40 });
    const beat = (await replica.projectorBeat())!;
    expect(beat.lag).toEqual({ events: 3, ms: 40 });
    const older = async (): Promise<boolean> =>
      (await replica.projectorBeat())!.silent_ms > beat.silent_ms + 50;
    await eventually(older, Boolean);
    await execute(database.url, 'DELETE FROM turnlog.projections');
    expect(await replica.projectorBeat()).toBeUndefined();
  });

  test('cut connections of the pool are replaced, and only the queries in hand fail', async () => {
    await (await openStore()).complete();
    const replica = openReplica();
    await Promise.all([replica.listAccounts(), replica.listAccounts()]);
    expect(await cutConnections(database.url, 'queries')).toBeGreaterThan(0);
    await replica.listAccounts().catch(() => undefined);
    expect(await replica.listAccounts()).toEqual([]);
  });

  test("one account's slow queries leave connections to other accounts and to look-ups of keys", async () => {
    await (await openStore()).complete();
    const replica = openReplica();
    const [live] = await execute(
      database.url,
      "SELECT schemaname FROM pg_tables WHERE tablename = 'sessions'",
    );
    const locker = new Client(database.url);
    await locker.connect();
    await locker.query(`BEGIN; LOCK TABLE ${String(live?.['schemaname'])}.sessions`);
    const slow = Array.from({ length: 500 }, () =>
      replica.listSessions('acct_1', ALL).catch(String),
    );
    try {
      expect(await replica.findApiKey('key_1')).toBeUndefined();
      expect((await replica.listReplays('acct_2', ALL)).rows).toEqual([]);
    } finally {
      await locker.end();
    }
    for (const page of await Promise.all(slow)) expect(page).toEqual({ rows: [], more: false });
  });

  test('after erasures the dead rows of the read models are cleared, once for all that come together', async () => {
    const store = closeLater(await openActive(database.url, VERSION, 500));
    await store.complete();
    const cleared = async (): Promise<number> => {
      const [row] = await execute(
        database.url,
        "SELECT vacuum_count::integer AS times FROM pg_stat_user_tables WHERE relname = 'agents'",
      );
      return (row?.['times'] as number | undefined) ?? 0;
    };
    // What a process before may have left.
    expect(await eventually(cleared, (times) => times === 1)).toBe(1);
    for (let agent = 0; agent < 20; agent += 1) {
      const events = [
        created(`agent_${agent}`),
        history.record({ stream: `agent-agent_${agent}` }, agentErased()),
      ];
      await store.apply(events, reached(events[1]!.position));
    }
    const times = await eventually(cleared, (count) => count > 1);
    expect(times).toBeGreaterThan(1);
    expect(times).toBeLessThan(10);
  });

  test('any number of processes may start at once on an empty database', async () => {
    const stopping = new AbortController();
    const { openPostgresProjectionStore } =
      await import('../../../infra/postgres/readModels/projectionStore.ts');
    const { openPostgresInstances } = await import('../../../infra/postgres/leases/instances.ts');
    const starting = [1, 2, 3, 4].map(() =>
      openPostgresProjectionStore({ databaseUrl: database.url, signal: stopping.signal }),
    );
    const instances = await Promise.all(
      [1, 2, 3, 4].map(() => openPostgresInstances({ databaseUrl: database.url })),
    );
    await Promise.race(starting);
    stopping.abort();
    const stores = (await Promise.all(starting)).filter((store) => store !== undefined);
    for (const { close } of [...stores, ...instances]) await close();
    expect(stores).toHaveLength(1);
    expect(
      await execute(database.url, 'SELECT file FROM turnlog.migrations ORDER BY number'),
    ).toEqual((await readdir(MIGRATIONS)).toSorted().map((file) => ({ file })));
  });
}

if (server) {
  describe('PostgreSQL read models', () => suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL read models');
}
