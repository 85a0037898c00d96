import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openPostgresReadModels } from '../../../infra/postgres/readModels/readModels.ts';
import { openPostgresRebuildStore } from '../../../infra/postgres/readModels/rebuildStore.ts';
import { liveSchema, VERSION } from '../../../infra/postgres/readModels/schema.ts';
import { pageParameters, selectPage } from '../../../infra/postgres/readModels/statements.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import {
  rebuildReadModels,
  type RebuildProgress,
} from '../../../services/followers/projector/rebuild.ts';
import { AGENT_LISTING } from '../../../shared/agents/sqlQueries.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import { eventually } from '../../support/processes/operator.ts';
import {
  createTestDatabase,
  cutConnections,
  execute,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import {
  openActive,
  startPostgresProjector,
} from '../../support/servers/postgres/postgresProjector.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import {
  agentId,
  appendAgents,
  recordingLogger,
} from '../../support/stores/projections/projector.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { reached } from '../../support/builders/history.ts';
import { agentsOf, ALL } from '../../support/stores/projections/agentsOf.ts';

const server = await startPostgresServer();
const SOON = 20_000;
const LIVE = liveSchema(VERSION);
const AGENTS = 2000;

interface PlanNode extends Record<string, unknown> {
  'Actual Rows': number;
  'Actual Loops': number;
  Plans?: PlanNode[];
}

/** How many rows the part of a plan has seen that saw the most. */
function mostRows(node: PlanNode): number {
  const removed = Object.entries(node).flatMap(([name, value]) =>
    name.startsWith('Rows Removed') ? [value as number] : [],
  );
  const seen = removed.reduce((sum, rows) => sum + rows, node['Actual Rows']);
  return Math.max(seen * node['Actual Loops'], ...(node.Plans ?? []).map(mostRows));
}

function suite(serverUrl: string): void {
  let database: TestDatabase;
  let folder: string;
  let log: EventStore;
  let projector: { stop: () => Promise<void> };
  let replicas: [ReadModels, ReadModels];

  beforeEach(async () => {
    database = await createTestDatabase(serverUrl);
    folder = await temporaryFolder();
    log = await openSqliteEventStore({ folder });
    projector = startPostgresProjector({ log, databaseUrl: database.url });
    const open = () => openPostgresReadModels({ databaseUrl: database.url });
    replicas = [open(), open()];
    const last = await appendAgents(log, 0, AGENTS, 2);
    for (const replica of replicas) expect(await replica.untilShown(last, SOON)).toBe(true);
    // The checkpoint has passed it a moment before the first generation is the live one.
    await eventually(
      () =>
        replicas[0].listAccounts().then(
          () => true,
          () => false,
        ),
      Boolean,
    );
  });
  afterEach(async () => {
    for (const replica of replicas) await replica.close();
    await projector.stop();
    await log.close();
    await rm(folder, { recursive: true });
    await database.drop();
  });

  const rebuild = async (
    onProgress: (progress: RebuildProgress) => void = () => undefined,
    signal = new AbortController().signal,
    from: Pick<EventStore, 'subscribe' | 'head'> = log,
  ): Promise<boolean> =>
    rebuildReadModels({
      log: from,
      store: await openPostgresRebuildStore({ databaseUrl: database.url }),
      signal,
      onProgress,
      logger: recordingLogger().logger,
    });
  /** The log, which gives its next batch when what the batch before set off has happened. */
  const logThatWaits = (happened: () => Promise<unknown>) => ({
    head: log.head,
    async *subscribe(options: Parameters<EventStore['subscribe']>[0]) {
      for await (const batch of log.subscribe(options)) {
        await happened();
        yield batch;
      }
    },
  });
  const schemas = async (): Promise<unknown[]> =>
    (
      await execute(
        database.url,
        "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'turnlog%' ORDER BY 1",
      )
    ).map(({ nspname }) => nspname);
  const rows = () =>
    execute(
      database.url,
      `SELECT agent_id, name, revision, position FROM ${LIVE}.agents ORDER BY agent_id`,
    );
  /** Makes the live generation wrong, so that it can be told from a rebuilt one. */
  const spoil = () => execute(database.url, `UPDATE ${LIVE}.agents SET name = 'spoilt'`);

  test('the live generation answers until the new one is switched to, which then is all there is', async () => {
    const complete = await rows();
    await spoil();
    const names = new Set<string | undefined>();
    const seen: RebuildProgress[] = [];
    const asking: Promise<unknown>[] = [];
    const version = await replicas[0].agentListVersion('acct_1');
    const ask = (progress: RebuildProgress): void => {
      seen.push(progress);
      asking.push(replicas[1].findAgent(agentId(7)).then((agent) => names.add(agent?.name)));
    };
    expect(
      await rebuild(
        ask,
        undefined,
        logThatWaits(() => Promise.all(asking)),
      ),
    ).toBe(true);
    await Promise.all(asking);
    expect(names).toContain('spoilt');
    expect(await rows()).toEqual(complete);
    for (const replica of replicas) {
      expect((await replica.findAgent(agentId(7)))?.name).toBe('name 2');
      expect(await replica.agentListVersion('acct_1')).not.toBe(version);
    }
    expect(await schemas()).toEqual(['turnlog', LIVE]);
    expect(seen.at(-1)).toMatchObject({ events: AGENTS * 3, percent: 100, parked: 0 });
  });

  test('an interrupted rebuild changes nothing that is asked for, and the next one goes on where it was', async () => {
    await spoil();
    const stop = new AbortController();
    let before = 0;
    expect(
      await rebuild(({ events }) => {
        before = events;
        stop.abort();
      }, stop.signal),
    ).toBe(false);
    expect(before).toBeLessThan(AGENTS * 3);
    expect((await replicas[0].findAgent(agentId(7)))?.name).toBe('spoilt');
    let after = 0;
    expect(await rebuild(({ events }) => (after = events))).toBe(true);
    expect(before + after).toBe(AGENTS * 3);
    expect((await replicas[0].findAgent(agentId(7)))?.name).toBe('name 2');
  });

  test('a rebuild whose connection is cut ends as interrupted', async () => {
    let cut: Promise<number> | undefined;
    const cutOnce = (): void => void (cut ??= cutConnections(database.url, 'rebuild'));
    expect(
      await rebuild(
        cutOnce,
        undefined,
        logThatWaits(async () => cut),
      ),
    ).toBe(false);
    expect(await cut).toBe(1);
    expect(await rebuild()).toBe(true);
    expect(await schemas()).toEqual(['turnlog', LIVE]);
  });

  test('a second rebuild at the same time is refused', async () => {
    const first = await openPostgresRebuildStore({ databaseUrl: database.url });
    await expect(openPostgresRebuildStore({ databaseUrl: database.url })).rejects.toMatchObject({
      code: 'rebuild_running',
    });
    await first.close();
  });

  test('what was seen once is seen ever after, on every replica, while generations are switched again and again under load', async () => {
    const state = { over: false };
    let written = AGENTS;
    const write = async (): Promise<void> => {
      const position = await appendAgents(log, written, written + 1, 1);
      const [writer, reader] = written % 2 === 0 ? replicas : replicas.toReversed();
      expect(await writer!.untilShown(position, SOON)).toBe(true);
      expect(await reader!.findAgent(agentId(written))).toMatchObject({
        revision: 1,
        name: 'name 1',
      });
      written += 1;
    };
    const writing = (async () => {
      while (!state.over) await write();
    })().finally(() => (state.over = true));
    for (let index = 0; index < 4; index += 1) {
      const before = written;
      // However slow the disk is: something is written beside every rebuild.
      const hasWritten = () => eventually(async () => written > before || state.over, Boolean);
      expect(await rebuild(undefined, undefined, logThatWaits(hasWritten))).toBe(true);
    }
    state.over = true;
    await writing;
    expect(written).toBeGreaterThanOrEqual(AGENTS + 4);
    for (const replica of replicas) expect(await agentsOf(replica)).toHaveLength(written);
    expect(await execute(database.url, 'SELECT generation, slot FROM turnlog.projections')).toEqual(
      [{ generation: 5, slot: 'live' }],
    );
  }, 60_000);

  test('a list of what was just built looks at each row a few times, though there are no statistics yet', async () => {
    expect(await rebuild()).toBe(true);
    const explain = `EXPLAIN (ANALYZE, FORMAT JSON) ${selectPage(AGENT_LISTING, false)}`;
    const [row] = await execute(database.url, explain, pageParameters<unknown>(['acct_1'], ALL));
    const [{ Plan: plan }] = row!['QUERY PLAN'] as [{ Plan: PlanNode }];
    expect(plan['Actual Rows']).toBe(AGENTS);
    expect(mostRows(plan)).toBeLessThanOrEqual(4 * AGENTS);
  });

  test('a generation that is behind the live one is brought up to it before the switch', async () => {
    const store = await openPostgresRebuildStore({ databaseUrl: database.url });
    const [last] = await execute(database.url, 'SELECT position FROM turnlog.projections');
    const asked: string[] = [];
    await store.publish(async (position) => {
      asked.push(position);
      await store.apply([], reached(position));
    });
    expect(asked).toEqual([last?.['position']]);
  });

  test('a generation that cannot be brought up to the live one is not switched to', async () => {
    const store = await openPostgresRebuildStore({ databaseUrl: database.url });
    await expect(store.publish(() => Promise.reject(new Error('stopped')))).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    expect(await agentsOf(replicas[0])).toHaveLength(AGENTS);
    expect(await schemas()).toEqual(['turnlog', LIVE, `${LIVE}_building`]);
  });

  test('the generations of an older version stay while a process of that version reads them, and go with the next completion', async () => {
    await projector.stop();
    await execute(
      database.url,
      "CREATE SCHEMA turnlog_v0; INSERT INTO turnlog.projections (version, slot, generation, made_at) VALUES (0, 'live', 1, '2026-01-01')",
    );
    const { Client } = await import('pg');
    const { readersLock } = await import('../../../infra/postgres/leases/locks.ts');
    const older = new Client({ connectionString: database.url });
    await older.connect();
    await older.query(`SELECT pg_advisory_lock_shared(${readersLock(0)})`);
    const store = await openActive(database.url);
    await store.complete();
    expect(await schemas()).toContain('turnlog_v0');
    await older.end();
    await store.complete();
    expect(await schemas()).toEqual(['turnlog', LIVE]);
    await store.close();
  });

  test('a rebuild may overtake the first generation of the projector, which then goes on with what was built', async () => {
    await projector.stop();
    await execute(
      database.url,
      `DROP SCHEMA ${LIVE} CASCADE; UPDATE turnlog.projections SET complete = false, position = NULL, event_position = NULL`,
    );
    const active = await openActive(database.url);
    await expect(replicas[0].findAgent(agentId(1))).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    expect(await rebuild()).toBe(true);
    expect(await agentsOf(replicas[0])).toHaveLength(AGENTS);
    const last = await active.checkpoint();
    await active.apply([], { position: last!.position, checkpoint: last });
    await active.complete();
    expect(await schemas()).toEqual(['turnlog', LIVE]);
    expect(await agentsOf(replicas[0])).toHaveLength(AGENTS);
    await active.close();
  });

  test('read models that were deleted by hand are built again by the next projector, and refuse queries until they are complete', async () => {
    await projector.stop();
    await execute(database.url, `DROP SCHEMA ${LIVE} CASCADE`);
    await expect(replicas[0].findAgent(agentId(1))).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    projector = startPostgresProjector({ log, databaseUrl: database.url });
    expect(await answerOf(replicas[0])).toHaveLength(AGENTS);
  });

  /** Asks until the answer is not that the read models are being built. */
  async function answerOf(replica: ReadModels) {
    for (;;) {
      const found = await agentsOf(replica).catch(() => undefined);
      if (found) return found;
    }
  }
}

if (server) {
  describe('PostgreSQL rebuild', () => suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL rebuild');
}
