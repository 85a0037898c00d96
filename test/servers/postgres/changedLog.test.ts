/** Read models in PostgreSQL whose checkpoint the log does not hold. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Client } from 'pg';
import {
  openPostgresReadModels,
  type PostgresReadModels,
} from '../../../infra/postgres/readModels/readModels.ts';
import { openPostgresRebuildStore } from '../../../infra/postgres/readModels/rebuildStore.ts';
import { channelOf, liveSchema, VERSION } from '../../../infra/postgres/readModels/schema.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { rebuildReadModels } from '../../../services/followers/projector/rebuild.ts';
import type { EventStore, Position } from '../../../shared/ports/eventStore.ts';
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
import { appendAgents, recordingLogger } from '../../support/stores/projections/projector.ts';
import { positionOf, reached } from '../../support/builders/history.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { declareRestored } from '../../support/stores/declareRestored.ts';
import { agentsOf } from '../../support/stores/projections/agentsOf.ts';

const server = await startPostgresServer();
const SOON = 20_000;
const LIVE = liveSchema(VERSION);
const AGENTS = 600;

function suite(serverUrl: string): void {
  let opened: AsyncDisposableStack;
  let database: TestDatabase;
  let log: EventStore;
  /** Another one. */
  let other: EventStore;
  let replica: PostgresReadModels;
  let projector: ReturnType<typeof start> | undefined;

  function start(follows: EventStore) {
    const { lines, logger } = recordingLogger();
    return {
      ...startPostgresProjector({ log: follows, databaseUrl: database.url, logger }),
      lines,
    };
  }
  const stop = async (): Promise<void> => {
    await projector?.stop();
    projector = undefined;
  };
  const listed = async (): Promise<number> => (await agentsOf(replica)).length;
  const rowOf = async (columns: string) =>
    (
      await execute(database.url, `SELECT ${columns} FROM turnlog.projections WHERE slot = 'live'`)
    )[0]!;
  const row = () => rowOf('generation, position, refused');
  const told = () => eventually(async () => replica.logChanged(), Boolean);
  const healed = () => eventually(row, ({ generation }) => generation === 2);

  beforeEach(async () => {
    opened = new AsyncDisposableStack();
    database = opened.adopt(await createTestDatabase(serverUrl), ({ drop }) => drop());
    const folder = opened.adopt(await temporaryFolder(), (made) => rm(made, { recursive: true }));
    const open = async (name: string) =>
      opened.adopt(await openSqliteEventStore({ folder: join(folder, name) }), ({ close }) =>
        close(),
      );
    [log, other] = [await open('log'), await open('other')];
    replica = opened.adopt(openPostgresReadModels({ databaseUrl: database.url }), ({ close }) =>
      close(),
    );
    opened.defer(stop);
    projector = start(log);
    const last = await appendAgents(log, 0, AGENTS, 1);
    expect(await replica.untilShown(last, SOON)).toBe(true);
    await eventually(
      () => rowOf('complete'),
      ({ complete }) => complete === true,
    );
    await stop();
    await appendAgents(other, 0, AGENTS / 2, 1);
  });
  afterEach(() => opened.disposeAsync());

  test('are left as they are, and every replica can tell, until the right log is back', async () => {
    const before = await row();
    projector = start(other);
    const reason = await told();
    expect(reason).toContain('accept-restored');
    expect(projector.lines).toContainEqual({
      level: 'error',
      fields: {},
      message: expect.stringContaining(reason!),
    });
    expect([await listed(), await row()]).toEqual([AGENTS, before]);
    // A replica that starts meanwhile, and the projector after this one.
    const late = openPostgresReadModels({ databaseUrl: database.url });
    await eventually(
      async () => late.logChanged(),
      (found) => found === reason,
    );
    await late.close();
    await stop();
    projector = start(log);
    await eventually(
      async () => replica.logChanged(),
      (found) => found === undefined,
    );
    expect(await replica.untilShown(await appendAgents(log, AGENTS, AGENTS + 1), SOON)).toBe(true);
    expect([await listed(), (await row())['generation']]).toEqual([AGENTS + 1, 1]);
  });

  test('are rebuilt beside the live generation once the log was declared; the next start is quiet', async () => {
    projector = start(other);
    await told();
    await declareRestored(other, [(await replica.checkpoint())!.log_id]);
    await healed();
    expect(await replica.untilShown((await other.head())!, SOON)).toBe(true);
    expect([await listed(), replica.logChanged()]).toEqual([AGENTS / 2, undefined]);
    expect(await row()).toMatchObject({ position: await other.head(), refused: null });
    expect((await replica.checkpoint())?.log_id).toBe((await rowOf('event_id'))['event_id']);
    await stop();
    projector = start(other);
    expect(await replica.untilShown(await appendAgents(other, AGENTS, AGENTS + 1), SOON)).toBe(
      true,
    );
    expect(projector.lines.map(({ message }) => message)).toEqual([
      'This projector is the active one',
    ]);
  });

  test('are not trusted by the projector after one that has died, and every replica can tell', async () => {
    const active = await openActive(database.url);
    const checkpoint = (await active.checkpoint())!;
    // That of somebody else is not given up.
    await active.giveUp({ ...checkpoint, event_id: 'another' });
    expect(await active.refused()).toBeUndefined();
    await active.giveUp(checkpoint);
    expect([
      await active.refused(),
      await active.checkpoint(),
      await replica.refusedCheckpoint(),
    ]).toEqual([checkpoint.position, undefined, checkpoint.position]);
    expect(await listed()).toBe(AGENTS);
    await cutConnections(database.url, 'projector');
    await active.close();
    projector = start(log);
    await healed();
    expect([await listed(), await replica.refusedCheckpoint()]).toEqual([AGENTS, undefined]);
  });

  test('are rebuilt where the projector is cut off again and again while it does so', async () => {
    await declareRestored(other, [(await replica.checkpoint())!.log_id]);
    const slow: EventStore = {
      ...other,
      async *subscribe(options) {
        for await (const batch of other.subscribe({ ...options, batchSize: 100 })) {
          yield batch;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      },
    };
    projector = start(slow);
    await eventually(row, ({ refused }) => refused !== null);
    for (const name of ['projector', 'rebuild', 'projector'] as const) {
      await cutConnections(database.url, name);
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    await healed();
    expect(await listed()).toBe(AGENTS / 2);
  });

  test('in a first generation that never was complete are rebuilt, and queries are refused until then', async () => {
    await execute(
      database.url,
      `ALTER SCHEMA ${LIVE} RENAME TO ${LIVE}_first; UPDATE turnlog.projections SET complete = false`,
    );
    await expect(replica.listAccounts()).rejects.toMatchObject({ code: 'store_unavailable' });
    await declareRestored(other, [(await replica.checkpoint())!.log_id]);
    projector = start(other);
    await healed();
    expect(await listed()).toBe(AGENTS / 2);
  });

  test('say where the log ends now where others wrote to it behind the checkpoint, and that is gone', async () => {
    const end = (await log.head())!;
    const gone = positionOf(10 ** 9);
    await execute(database.url, `UPDATE turnlog.projections SET position = '${gone}'`);
    await cutConnections(database.url, 'listener');
    await eventually(() => replica.untilShown(gone, 100), Boolean);
    projector = start(log);
    await eventually(row, ({ position }) => position === end);
    // What is written from now on is shown when it is, not before.
    await eventually(
      () => replica.untilShown(positionOf(10 ** 8), 50),
      (shown) => !shown,
    );
  });

  test('are known by what was told last, also where that is told while they are looked at', async () => {
    const [ahead, end] = [positionOf(10 ** 9), (await log.head())!];
    const teller = new Client({ connectionString: database.url });
    const looks = new Client({ connectionString: database.url });
    for (const client of [teller, looks]) {
      await client.connect();
      opened.defer(() => client.end());
    }
    const tell = (position: Position) =>
      teller.query(
        `UPDATE turnlog.projections SET position = $1 WHERE slot = 'live' RETURNING pg_notify('${channelOf(VERSION)}', position)`,
        [position],
      );
    for (let round = 0; round < 200; round += 1) {
      await tell(ahead);
      expect(await replica.untilShown(ahead, SOON)).toBe(true);
      await Promise.all([
        looks.query(`SELECT pg_notify('${channelOf(VERSION)}', '')`),
        sleep(Math.random() * 2).then(() => tell(end)),
      ]);
      await eventually(
        () => replica.untilShown(ahead, 1),
        (shown) => !shown,
      );
    }
  }, 60_000);

  describe('and a rebuild', () => {
    const rebuild = async (from: EventStore) => {
      const { lines, logger } = recordingLogger();
      const store = await openPostgresRebuildStore({ databaseUrl: database.url });
      const signal = new AbortController().signal;
      const parts = { log: from, store, signal, onProgress: () => undefined, logger };
      expect(await rebuildReadModels(parts)).toBe(true);
      return lines;
    };

    test('replaces a live generation of another log, and the projector goes on with it', async () => {
      projector = start(other);
      await told();
      expect(await rebuild(other)).toEqual([]);
      await eventually(
        async () => replica.logChanged(),
        (found) => found === undefined,
      );
      expect(await replica.untilShown(await appendAgents(other, AGENTS, AGENTS + 1), SOON)).toBe(
        true,
      );
      expect(await listed()).toBe(AGENTS / 2 + 1);
    });

    test('that was interrupted on another log begins anew', async () => {
      const building = await openPostgresRebuildStore({ databaseUrl: database.url });
      const { position } = (await log.firstEvent())!;
      await building.apply([], reached(position));
      await building.close();
      expect((await rebuild(log)).at(-1)).toMatchObject({
        level: 'warn',
        message: expect.stringContaining('starts over'),
      });
      expect(await listed()).toBe(AGENTS);
    });
  });
}

if (server) {
  describe('PostgreSQL read models whose checkpoint the log does not hold', () =>
    suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL read models whose checkpoint the log does not hold');
}
