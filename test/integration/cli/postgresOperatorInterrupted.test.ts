/**
 * An operator command that waits for read models in PostgreSQL which another projector does not
 * bring up to date.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test } from '@jest/globals';
import { openOperator } from '../../../services/compose/operator.ts';
import { parseConfig } from '../../../shared/config.ts';
import { createLogger } from '../../../shared/logger.ts';
import { startEventStoreDbServer } from '../../support/eventstoredb/eventStoreDbServer.ts';
import { createTestDatabase } from '../../support/postgres/postgresDatabase.ts';
import { openActive } from '../../support/postgres/postgresProjector.ts';
import { startPostgresServer, withoutPostgres } from '../../support/postgres/postgresServer.ts';
import { appendAgents } from '../../support/projections/projector.ts';

const server = await startPostgresServer();

if (server) {
  describe('an operator command over PostgreSQL', () => {
    test('is ended by its signal while it waits, and closes what it had opened', async () => {
      const database = await createTestDatabase(server.url);
      const eventStore = await startEventStoreDbServer();
      const idle = await openActive(database.url);
      const interrupt = new AbortController();
      const env = { DATABASE_URL: database.url, EVENTSTOREDB_URL: eventStore.connectionString };
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
  });
  afterAll(server.close);
} else {
  withoutPostgres('an operator command over PostgreSQL');
}
