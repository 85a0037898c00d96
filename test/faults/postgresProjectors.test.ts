import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { openPostgresReadModels } from '../../infra/postgres/readModels/readModels.ts';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore/eventStore.ts';
import { contenders } from '../support/processes/contenders.ts';
import { createTestDatabase } from '../support/servers/postgres/postgresDatabase.ts';
import { appendSession, foundAndDue } from '../support/servers/postgres/postgresFaults.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../support/servers/postgres/postgresServer.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../support/jest/size.ts';

const MAIN = fileURLToPath(
  new URL('../support/servers/postgres/postgresProjectorProcess.ts', import.meta.url),
);
const ROUNDS = size({ small: 4, full: 8 });
/**
 * What is promised is 5 s, where the machine has nothing else to do: other suites run beside the
 * small size. Even at full size one take-over may be held up, but not most of them.
 */
const TAKE_OVER_MS = size({ small: 25_000, full: 5_000 });
const SOON = 30_000;
const server = await startPostgresServer();

if (server) {
  test('the other projector takes over in time when the active one is killed or stands still under load, and nothing is applied twice or left out', async () => {
    const database = await createTestDatabase(server.url);
    const folder = await temporaryFolder();
    const log = await openSqliteEventStore({ folder });
    const readModels = openPostgresReadModels({ databaseUrl: database.url });
    const projectors = contenders([MAIN, folder, database.url]);
    const { start, end, one } = projectors;

    const state = { over: false, sessions: 0 };
    /**
     * How long it took, in milliseconds, where the active one was killed and where it stood still.
     */
    const takeOvers: [number[], number[]] = [[], []];
    // Waits a little after each write, so that the log stays short enough to be looked at whole.
    const write = async (): Promise<boolean> =>
      readModels.untilShown(await appendSession(log, (state.sessions += 1)), 10);
    await write();
    const writing = (async () => {
      while (!state.over) await write();
    })();
    /** Whether what is written from now on is applied. */
    const passes = async (): Promise<boolean> =>
      readModels.untilShown(await appendSession(log, (state.sessions += 1)), SOON);
    try {
      start();
      start();
      expect(await passes()).toBe(true);
      for (let round = 0; round < ROUNDS; round += 1) {
        await one('standing_by');
        const before = await one('active');
        const begun = performance.now();
        projectors.told.set(before, 'stopped');
        if (round % 2 === 0) await end(before);
        else before.kill('SIGSTOP');
        expect(await passes()).toBe(true);
        takeOvers[round % 2]!.push(performance.now() - begun);
        await one('active');
        // It goes on in the middle of what it was doing, and must find that it is no longer its
        // turn.
        before.kill('SIGCONT');
        if (round % 2 === 0) start();
        expect(await passes()).toBe(true);
        const { found, due } = await foundAndDue(database.url, log);
        expect(found).toEqual(due);
      }
      state.over = true;
      await writing;
      expect(await passes()).toBe(true);
      expect((await foundAndDue(database.url, log)).found.sessions).toHaveLength(state.sessions);
      for (const durations of takeOvers)
        expect(durations.toSorted((a, b) => a - b)[ROUNDS / 4 - 1]).toBeLessThan(TAKE_OVER_MS);
    } finally {
      state.over = true;
      await writing;
      for (const projector of projectors.told.keys()) await end(projector);
      await readModels.close();
      await log.close();
      await rm(folder, { recursive: true });
      await database.drop();
      await server.close();
    }
  }, 180_000);
} else {
  withoutPostgres('PostgreSQL projectors');
}
