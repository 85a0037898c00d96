import { afterAll } from '@jest/globals';
import { openPostgresTileReader } from '../../../infra/postgres/tiles/reader.ts';
import { acquireProverLease } from '../../../infra/postgres/tiles/trees.ts';
import type { ActiveTrees } from '../../../shared/transparency/tileStore.ts';
import { createTestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { tileStoreContract } from '../../contracts/tileStore.ts';

const server = await startPostgresServer();

if (server) {
  tileStoreContract('PostgreSQL', async () => {
    const database = await createTestDatabase(server.url);
    const { signal } = new AbortController();
    const readers: ReturnType<typeof openPostgresTileReader>[] = [];
    let active: ActiveTrees | undefined;
    return {
      async trees() {
        // One process at a time has the lock.
        await active?.close();
        const onFailure = (error: unknown): void => {
          throw error;
        };
        active = await acquireProverLease({ databaseUrl: database.url, signal, onFailure });
        return active!;
      },
      reader() {
        const reader = openPostgresTileReader(database.url);
        readers.push(reader);
        return reader;
      },
      async dispose() {
        await active?.close();
        for (const reader of readers) await reader.close();
        await database.drop();
      },
    };
  });
  afterAll(server.close);
} else {
  withoutPostgres('PostgreSQL tile store');
}
