import { spawn, type ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { openPostgresReadModels } from '../../infra/postgres/readModels/readModels.ts';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore.ts';
import { createTestDatabase } from '../support/postgresDatabase.ts';
import { appendSession, foundAndDue } from '../support/postgresFaults.ts';
import { startPostgresServer, withoutPostgres } from '../support/postgresServer.ts';
import { temporaryFolder } from '../support/sqliteEventStore.ts';

const MAIN = fileURLToPath(new URL('../support/postgresProjectorProcess.ts', import.meta.url));
const ROUNDS = 8;
/** What issue and README promise. */
const TAKE_OVER_MS = 5000;
const server = await startPostgresServer();

if (server) {
  test('the other projector takes over in time when the active one is killed or stands still under load, and nothing is applied twice or left out', async () => {
    const database = await createTestDatabase(server.url);
    const folder = await temporaryFolder();
    const log = await openSqliteEventStore({ folder });
    const readModels = openPostgresReadModels({ databaseUrl: database.url });
    const projectors = new Set<ChildProcess>();
    const states = new EventEmitter<{ active: [ChildProcess] }>();

    function start(): void {
      const projector = spawn(process.execPath, [MAIN, folder, database.url], { stdio: ['ignore', 'pipe', 'inherit'] });
      projectors.add(projector);
      createInterface({ input: projector.stdout }).on('line', (line) => {
        if (line === 'active') states.emit('active', projector);
      });
    }
    const end = async (projector: ChildProcess): Promise<void> => {
      projectors.delete(projector);
      const exited = once(projector, 'exit');
      projector.kill('SIGKILL');
      await exited;
    };

    const state = { over: false, sessions: 0 };
    // Waits a little after each write, so that the log stays short enough to be looked at whole.
    const write = async (): Promise<boolean> => readModels.waitUntilPassed(await appendSession(log, (state.sessions += 1)), 10);
    await write();
    const writing = (async () => {
      while (!state.over) await write();
    })();
    /** Whether what is written from now on is applied in time. */
    const passes = async (timeoutMs: number): Promise<boolean> => readModels.waitUntilPassed(await appendSession(log, (state.sessions += 1)), timeoutMs);

    try {
      const first = once(states, 'active');
      start();
      start();
      expect(await passes(30_000)).toBe(true);
      let [active] = (await first) as [ChildProcess];
      for (let round = 0; round < ROUNDS; round += 1) {
        const before = active;
        const next = once(states, 'active');
        if (round % 2 === 0) await end(before);
        else before.kill('SIGSTOP');
        expect(await passes(TAKE_OVER_MS)).toBe(true);
        [active] = (await next) as [ChildProcess];
        expect(active === before).toBe(false);
        // It goes on in the middle of what it was doing, and must find that it is no longer its turn.
        before.kill('SIGCONT');
        if (round % 2 === 0) start();
        expect(await passes(TAKE_OVER_MS)).toBe(true);
        const { found, due } = await foundAndDue(database.url, log);
        expect(found).toEqual(due);
      }
      state.over = true;
      await writing;
      expect(await passes(TAKE_OVER_MS)).toBe(true);
      expect((await foundAndDue(database.url, log)).found.sessions).toHaveLength(state.sessions);
    } finally {
      state.over = true;
      await writing;
      for (const projector of projectors) await end(projector);
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
