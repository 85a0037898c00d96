/** Read models in PostgreSQL whose checkpoint is no position of the log. */
import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  openPostgresReadModels,
  type PostgresReadModels,
} from '../../../infra/postgres/readModels/readModels.ts';
import { openPostgresRebuildStore } from '../../../infra/postgres/readModels/rebuildStore.ts';
import { liveSchema, VERSION } from '../../../infra/postgres/readModels/version.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore.ts';
import { rebuildReadModels } from '../../../services/projector/rebuild.ts';
import { tableNames } from '../../../shared/readModels/tables.ts';
import { beyondTheEnd } from '../../../shared/eventlog/positions.ts';
import type { EventLog, EventStore, Position } from '../../../shared/ports/eventStore.ts';
import { eventually } from '../../support/processes/operator.ts';
import {
  createTestDatabase,
  cutConnections,
  execute,
  type TestDatabase,
} from '../../support/postgres/postgresDatabase.ts';
import { openActive, startPostgresProjector } from '../../support/postgres/postgresProjector.ts';
import { startPostgresServer, withoutPostgres } from '../../support/postgres/postgresServer.ts';
import { appendAgents, recordingLogger } from '../../support/projections/projector.ts';
import { randomHistory } from '../../support/events/randomHistory.ts';
import { positionOf, reached } from '../../support/events/history.ts';
import { BOGUS, fixedLog } from '../../support/projections/refusedCheckpoint.ts';
import { temporaryFolder } from '../../support/sqlite/sqliteEventStore.ts';
import { size } from '../../support/jest/size.ts';

const server = await startPostgresServer();
const SOON = 20_000;
const LIVE = liveSchema(VERSION);
const AGENTS = 1_500;

function suite(serverUrl: string): void {
  let database: TestDatabase;
  let folder: string;
  let log: EventStore;
  let last: Position;
  let replica: PostgresReadModels;
  let projector: ReturnType<typeof start> | undefined;

  function start(follows: Pick<EventLog, 'head' | 'subscribe'> = log) {
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
  const listed = async (): Promise<number> => (await replica.listAgents('acct_1', {})).length;
  const row = async () =>
    (
      await execute(
        database.url,
        "SELECT generation, position, refused FROM turnlog.projections WHERE slot = 'live'",
      )
    )[0];
  const schemas = async () =>
    (
      await execute(
        database.url,
        "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'turnlog%' ORDER BY 1",
      )
    ).map(({ nspname }) => nspname);
  /** Resolves once queries are answered. */
  const answers = () =>
    eventually(
      () =>
        replica.listAccounts().then(
          () => true,
          () => false,
        ),
      Boolean,
    );
  /**
   * A database that lacks every other agent and has such a checkpoint: what an older version left
   * behind.
   */
  const breakIt = (checkpoint = BOGUS) =>
    execute(
      database.url,
      `DELETE FROM ${LIVE}.agents WHERE agent_id ~ '[13579]$';
       UPDATE turnlog.projections SET position = '${checkpoint}' WHERE slot = 'live'`,
    );

  beforeEach(async () => {
    database = await createTestDatabase(serverUrl);
    folder = await temporaryFolder();
    log = await openSqliteEventStore({ folder });
    last = await appendAgents(log, 0, AGENTS, 1);
    replica = openPostgresReadModels({ databaseUrl: database.url });
    projector = start();
    expect(await replica.untilShown(last, SOON)).toBe(true);
    await answers();
    await stop();
  });
  afterEach(async () => {
    await stop();
    await replica.close();
    await log.close();
    await rm(folder, { recursive: true });
    await database.drop();
  });

  const healed = () =>
    eventually(
      async () => (await row())?.['generation'],
      (generation) => generation === 2,
    );

  test('are rebuilt beside the live generation, which answers until then; the next start is quiet', async () => {
    await breakIt();
    // The listener is told by a new connection of what was changed past it.
    await cutConnections(database.url, 'listener');
    await eventually(
      () => replica.untilShown(last, 100),
      (passed) => !passed,
    );
    projector = start();
    expect(await replica.untilShown(last, SOON)).toBe(true);
    await healed();
    expect(await listed()).toBe(AGENTS);
    expect(await row()).toEqual({ generation: 2, position: last, refused: null });
    expect(await replica.untilShown(await appendAgents(log, AGENTS, AGENTS + 1), SOON)).toBe(true);
    expect(await listed()).toBe(AGENTS + 1);
    expect(
      projector.lines.filter(
        ({ level, message }) => level !== 'info' || message.includes('healed'),
      ),
    ).toMatchObject([
      {
        level: 'warn',
        fields: { checkpoint: BOGUS, end: last },
        message: expect.stringContaining('built anew from the log'),
      },
      { level: 'info', message: expect.stringContaining('healed') },
    ]);
    await stop();
    projector = start();
    expect(await replica.untilShown(await appendAgents(log, AGENTS + 1, AGENTS + 2), SOON)).toBe(
      true,
    );
    expect(projector.lines.map(({ message }) => message)).toEqual([
      'This projector is the active one',
    ]);
  });

  test('are not trusted by the projector after one that has died, and every replica can tell', async () => {
    await breakIt();
    const active = await openActive(database.url);
    await active.giveUp(BOGUS as Position);
    expect([
      await active.refused(),
      await active.checkpoint(),
      await replica.refusedCheckpoint(),
    ]).toEqual([BOGUS, undefined, BOGUS]);
    expect(await listed()).toBe(AGENTS / 2);
    await cutConnections(database.url, 'projector');
    await active.close();
    // What the dead one had built.
    const building = await openPostgresRebuildStore({ databaseUrl: database.url });
    await building.apply([], reached(positionOf(0)));
    await building.close();
    projector = start();
    await healed();
    expect([await listed(), await replica.refusedCheckpoint()]).toEqual([AGENTS, undefined]);
  });

  test('are rebuilt where the projector is cut off again and again while it does so', async () => {
    await breakIt();
    const slow: Pick<EventLog, 'head' | 'subscribe'> = {
      head: log.head,
      async *subscribe(options) {
        for await (const batch of log.subscribe({ ...options, batchSize: 500 })) {
          yield batch;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      },
    };
    projector = start(slow);
    await eventually(row, (found) => found?.['refused'] === BOGUS);
    for (const name of ['projector', 'rebuild', 'projector'] as const) {
      await cutConnections(database.url, name);
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    await healed();
    expect(await listed()).toBe(AGENTS);
  });

  test('beyond the end of the log are looked at three times before they are rebuilt', async () => {
    await breakIt(positionOf(10 ** 9));
    const began = performance.now();
    projector = start();
    await healed();
    expect(performance.now() - began).toBeGreaterThan(4_900);
    expect(await listed()).toBe(AGENTS);
    expect(
      projector.lines.filter(({ level }) => level === 'warn').map(({ message }) => message),
    ).toEqual([
      'The log refuses the checkpoint of the read models; it is looked at again',
      expect.stringContaining('built anew from the log'),
    ]);
  });

  test('that the log has grown past since it was refused are rebuilt', async () => {
    await breakIt(positionOf(AGENTS));
    let subscriptions = 0;
    projector = start({
      head: log.head,
      async *subscribe(options) {
        subscriptions += 1;
        if (subscriptions === 1) throw beyondTheEnd(positionOf(AGENTS), positionOf(AGENTS - 1));
        yield* log.subscribe(options);
      },
    });
    await healed();
    expect(await listed()).toBe(AGENTS);
    expect(projector.lines.filter(({ level }) => level === 'warn').at(-1)?.message).toContain(
      'before it grew',
    );
  });

  test('in a first generation that never was complete are rebuilt, and queries are refused until then', async () => {
    await execute(
      database.url,
      `ALTER SCHEMA ${LIVE} RENAME TO ${LIVE}_first;
       UPDATE turnlog.projections SET complete = false, position = '${BOGUS}'`,
    );
    await expect(replica.listAccounts()).rejects.toMatchObject({ code: 'store_unavailable' });
    projector = start();
    await healed();
    expect(await listed()).toBe(AGENTS);
    expect(await replica.untilShown(await appendAgents(log, AGENTS, AGENTS + 1), SOON)).toBe(true);
    expect(await schemas()).toEqual(['turnlog', LIVE]);
  });

  test('of any history become the rows of a fresh projection', async () => {
    const contents = async (): Promise<unknown[]> =>
      Promise.all(
        tableNames.map((table) =>
          execute(
            database.url,
            `SELECT json_agg(found ORDER BY found::text) AS rows FROM ${LIVE}.${table} AS found`,
          ),
        ),
      );
    const projected = async (events: Parameters<typeof fixedLog>[0]): Promise<unknown[]> => {
      projector = start(fixedLog(events));
      const generation = (await row())?.['generation'];
      await eventually(
        row,
        (found) => found?.['position'] === events.at(-1)?.position && found?.['refused'] === null,
      );
      await answers();
      expect(generation).toBeDefined();
      await stop();
      return contents();
    };
    await fc.assert(
      fc.asyncProperty(
        randomHistory('').chain((events) =>
          fc.tuple(fc.constant(events), fc.nat(events.length - 1)),
        ),
        async ([events, before]) => {
          await execute(database.url, `DROP SCHEMA ${LIVE} CASCADE`);
          const active = await openActive(database.url);
          await active.apply(events.slice(0, before), reached(events[before]!.position));
          await active.complete();
          await active.close();
          await execute(database.url, `UPDATE turnlog.projections SET position = '${BOGUS}'`);
          const healedRows = await projected(events);
          await execute(database.url, `DROP SCHEMA ${LIVE} CASCADE`);
          await (await openActive(database.url)).close();
          expect(healedRows).toEqual(await projected(events));
        },
      ),
      { numRuns: size({ small: 3, full: 6 }) },
    );
  });

  describe('and a rebuild', () => {
    const rebuild = async () => {
      const { lines, logger } = recordingLogger();
      const store = await openPostgresRebuildStore({ databaseUrl: database.url });
      expect(
        await rebuildReadModels({
          log,
          store,
          signal: new AbortController().signal,
          onProgress: () => undefined,
          logger,
        }),
      ).toBe(true);
      return lines;
    };

    test.each([
      ['that no log can have', BOGUS],
      ['beyond the end of the log', positionOf(10 ** 9)],
    ])(
      'replaces a live generation with a checkpoint %s without waiting for it',
      async (_, checkpoint) => {
        await breakIt(checkpoint);
        const began = performance.now();
        expect(await rebuild()).toEqual([]);
        expect(performance.now() - began).toBeLessThan(10_000);
        expect(await row()).toEqual({ generation: 2, position: last, refused: null });
        expect(await listed()).toBe(AGENTS);
      },
    );

    test('that was interrupted with such a checkpoint starts over', async () => {
      const building = await openPostgresRebuildStore({ databaseUrl: database.url });
      await building.apply([], reached(positionOf(1)));
      await building.close();
      await execute(
        database.url,
        `UPDATE turnlog.projections SET position = '${BOGUS}' WHERE slot = 'building'`,
      );
      expect(await rebuild()).toMatchObject([
        {
          level: 'warn',
          fields: { checkpoint: BOGUS },
          message: expect.stringContaining('begins anew'),
        },
      ]);
      expect(await listed()).toBe(AGENTS);
    });
  });
}

if (server) {
  describe('PostgreSQL read models with a checkpoint that is no position of the log', () =>
    suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL read models with a checkpoint that is no position of the log');
}
