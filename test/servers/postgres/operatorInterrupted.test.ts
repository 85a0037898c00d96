/**
 * An operator command that waits for read models in PostgreSQL which another projector does not
 * bring up to date.
 */
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test } from '@jest/globals';
import { openOperator } from '../../../services/compose/operator/operator.ts';
import { parseConfig } from '../../../shared/lib/config/config.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import { startEventStoreDbProcess } from '../../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { startEventStoreDbServer } from '../../support/servers/eventstoredb/eventStoreDbServer.ts';
import { createTestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import { openActive } from '../../support/servers/postgres/postgresProjector.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { startCliProcess } from '../../support/processes/cliProcess.ts';
import { appendAgents } from '../../support/stores/projections/projector.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { testMasterKeyFile } from '../../support/stores/masterKeyFile.ts';

const server = await startPostgresServer();

if (server) {
  describe('an operator command over PostgreSQL', () => {
    test('is ended by its signal while it waits, and closes what it had opened', async () => {
      const database = await createTestDatabase(server.url);
      const eventStore = await startEventStoreDbServer();
      const idle = await openActive(database.url);
      const interrupt = new AbortController();
      const env = {
        DATABASE_URL: database.url,
        MASTER_KEY_FILE: testMasterKeyFile(),
        EVENTSTOREDB_URL: eventStore.connectionString,
      };
      const operator = await openOperator(
        parseConfig(env),
        createLogger('silent'),
        interrupt.signal,
      );
      await appendAgents(operator.store, 0, 1);
      const waiting = operator.readModels();
      await sleep(500);
      interrupt.abort(new Error('interrupted'));
      const began = performance.now();
      await expect(waiting).rejects.toThrow('interrupted');
      expect(performance.now() - began).toBeLessThan(5_000);
      await operator.close();
      await idle.close();
      await eventStore.close();
      await database.drop();
    }, 60_000);

    test.each([
      ['another projector does not bring the read models up to date', 'another process projects'],
      ['the event store has fallen silent as well', 'does not answer'],
    ])(
      'says what it waits for where %s, and a signal ends it',
      async (_where, said) => {
        const database = await createTestDatabase(server.url);
        const folder = await temporaryFolder();
        const eventStore = await startEventStoreDbProcess({ folder });
        const idle = await openActive(database.url);
        const env = {
          DATABASE_URL: database.url,
          MASTER_KEY_FILE: testMasterKeyFile(),
          EVENTSTOREDB_URL: eventStore.connectionString,
        };
        const operator = await openOperator(parseConfig(env), createLogger('silent'));
        await appendAgents(operator.store, 0, 1);
        await operator.close();
        if (said === 'does not answer') eventStore.signal('SIGSTOP');
        const cli = startCliProcess(env, 'keys', 'list');
        await cli.told((err) => err.includes(said));
        const began = performance.now();
        cli.kill('SIGTERM');
        const { code, err } = await cli.ended;
        expect([code, err.endsWith('Interrupted.\n')]).toEqual([130, true]);
        expect(performance.now() - began).toBeLessThan(10_000);
        eventStore.signal('SIGCONT');
        await idle.close();
        await eventStore.kill();
        await database.drop();
        await rm(folder, { recursive: true });
      },
      90_000,
    );
  });
  afterAll(server.close);
} else {
  withoutPostgres('an operator command over PostgreSQL');
}
