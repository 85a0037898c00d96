import { rm } from 'node:fs/promises';
import { startEventStoreDbProcess } from '../servers/eventstoredb/eventStoreDbProcess.ts';
import { startScriptedModel } from '../fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile, type Client } from '../http/service.ts';
import { createTestDatabase } from '../servers/postgres/postgresDatabase.ts';
import { temporaryFolder } from '../stores/sqlite/sqliteEventStore.ts';
import { testMasterKeyFile } from '../stores/masterKeyFile.ts';
import { eventually } from './operator.ts';
import { startServerProcess, type ServerProcess } from './serverProcess.ts';
import { testSigningKeyFile } from '../builders/signingKey.ts';

/** What a process answers for itself, where it is ready. */
export const health = async (client: Client) => (await client.get('/health/ready')).body.data;

export const clientOf = async ({ ready }: ServerProcess): Promise<Client> =>
  apiClient(await ready, TEST_KEY);

/**
 * An event store of its own, a database, and the services that a test starts over them, one a
 * process. The model takes 8 s for the input `slow`.
 */
export async function replicaProcesses(serverUrl: string) {
  const folder = await temporaryFolder();
  const model = await startScriptedModel((request) => ({
    text: 'Done.',
    delay_ms: request.messages.at(-1)!.content === 'slow' ? 8_000 : 0,
  }));
  const database = await createTestDatabase(serverUrl);
  const eventStore = await startEventStoreDbProcess({ folder });
  const common = {
    EVENTSTOREDB_URL: eventStore.connectionString,
    DATABASE_URL: database.url,
    MASTER_KEY_FILE: testMasterKeyFile(),
    LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    VISIBILITY_WAIT_MS: '1000',
    RUN_TIMEOUT_MS: '60000',
  };
  const running: ServerProcess[] = [];

  function start(services: string, env: Record<string, string> = {}): ServerProcess {
    const process = startServerProcess({ ...common, ...env }, ['--services', services]);
    running.push(process);
    return process;
  }

  return {
    eventStore,
    model,
    databaseUrl: database.url,
    start,
    /** An api, the active projector, with the event store under that URL, and one that stands by. */
    async startThree(eventStoreUrl = eventStore.connectionString) {
      const active = start('projector', { EVENTSTOREDB_URL: eventStoreUrl });
      const api = await clientOf(start('api'));
      await eventually(
        async () => health(await clientOf(active)),
        (data) => data?.projector.state === 'active',
      );
      const standby = start('projector');
      await standby.ready;
      return { api, active, standby };
    },
    async close() {
      for (const process of running) process.kill('SIGKILL');
      await Promise.all(running.map(({ exited }) => exited));
      await eventStore.kill();
      await model.close();
      await database.drop();
      await rm(folder, { recursive: true });
    },
  };
}
