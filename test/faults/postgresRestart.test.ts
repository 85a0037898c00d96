import { rm } from 'node:fs/promises';
import { afterAll, expect, test } from '@jest/globals';
import { openPostgresReadModels } from '../../infra/postgres/readModels/readModels.ts';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore/eventStore.ts';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import {
  createTestDatabase,
  cutConnections,
} from '../support/servers/postgres/postgresDatabase.ts';
import { appendSession, foundAndDue } from '../support/servers/postgres/postgresFaults.ts';
import { startPostgresProcess } from '../support/servers/postgres/postgresProcess.ts';
import { startPostgresProjector } from '../support/servers/postgres/postgresProjector.ts';
import { withoutPostgres } from '../support/servers/postgres/postgresServer.ts';
import { eventually } from '../support/processes/operator.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../support/jest/size.ts';

const KILLS = size({ small: 4, full: 8 });
const CUTS = size({ small: 9, full: 20 });
const WRITERS = 8;
const SOON = 30_000;
const server = await startPostgresProcess();

async function underLoad(
  disturb: (written: (count: number) => Promise<void>) => Promise<void>,
  databaseUrl: string,
): Promise<void> {
  const folder = await temporaryFolder();
  const log = await openSqliteEventStore({ folder });
  const projector = startPostgresProjector({ log, databaseUrl });
  const readModels = openPostgresReadModels({ databaseUrl });
  const state = {
    over: false,
    sessions: 0,
    last: '' as Position,
    unexpected: [] as unknown[],
    goOn: Promise.resolve(),
  };

  /**
   * Writes, and asks what is there: the answer is rows or that the store is unavailable, never
   * anything else.
   */
  async function write(): Promise<void> {
    while (!state.over) {
      await state.goOn;
      state.last = await appendSession(log, (state.sessions += 1));
      await readModels
        .findSession('session_000001')
        .catch(
          (error: unknown) =>
            isTurnlogError(error, 'store_unavailable') || state.unexpected.push(error),
        );
    }
  }
  const written = async (count: number): Promise<void> => {
    const goal = state.sessions + count;
    while (state.sessions < goal) await new Promise((resolve) => setImmediate(resolve));
  };

  /**
   * Nothing is written meanwhile: a log that grew while it is looked at whole would take longer
   * each time.
   */
  async function look(): Promise<void> {
    const looked = Promise.withResolvers<void>();
    state.goOn = looked.promise;
    // The first generation answers only once it has caught up.
    await eventually(
      () => readModels.findSession('session_000001').catch(() => undefined),
      (session) => session !== undefined,
    );
    const { found, due } = await foundAndDue(databaseUrl, log).finally(looked.resolve);
    expect(found).toEqual(due);
  }

  const writing = Array.from({ length: WRITERS }, write);
  try {
    await disturb(async (count) => {
      await written(count);
      expect(await readModels.untilShown(state.last, SOON)).toBe(true);
      await look();
      await written(Math.ceil(Math.random() * count));
    });
    state.over = true;
    await Promise.all(writing);
    expect(await readModels.untilShown((await log.head())!, SOON)).toBe(true);
    const { found, due } = await foundAndDue(databaseUrl, log);
    expect(found).toEqual(due);
    expect(found.sessions).toHaveLength(state.sessions);
    expect(state.unexpected).toEqual([]);
  } finally {
    state.over = true;
    await Promise.all(writing);
    await readModels.close();
    await projector.stop();
    await log.close();
    await rm(folder, { recursive: true });
  }
}

if (server) {
  const database = async (): Promise<string> => (await createTestDatabase(server.url)).url;
  afterAll(server.close);

  test('rows and checkpoint fit each other whenever the server is killed under load, and all recover by themselves', async () => {
    await underLoad(
      async (written) => {
        for (let kill = 0; kill < KILLS; kill += 1) {
          await written(200);
          await server.kill();
          await server.start();
        }
      },
      await database(),
    );
  }, 180_000);

  test('rows and checkpoint fit each other whenever connections are cut under load', async () => {
    const databaseUrl = await database();
    await underLoad(async (written) => {
      for (let cut = 0; cut < CUTS; cut += 1) {
        await written(40);
        await cutConnections(
          databaseUrl,
          (['projector', 'listener', 'queries'] as const)[cut % 3]!,
        );
      }
    }, databaseUrl);
  }, 180_000);
} else {
  withoutPostgres('PostgreSQL restarts');
}
