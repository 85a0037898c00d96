/** Services whose role may create nothing, in a database that its owner has migrated. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openPostgresKeyStore } from '../../../infra/postgres/keyStore.ts';
import { openPostgresReplayAttempts } from '../../../infra/postgres/replayAttempts.ts';
import { openPostgresTileReader } from '../../../infra/postgres/tiles/reader.ts';
import { checkConnectivity } from '../../../infra/postgres/connectivityCheck.ts';
import { postgresVersion, liveSchema, VERSION } from '../../../infra/postgres/readModels/schema.ts';
import { openOperator } from '../../../services/compose/operator/operator.ts';
import { startService } from '../../../services/compose/service.ts';
import { parseConfig } from '../../../shared/lib/config/config.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import { OLDER_TABLES } from '../../support/stores/projections/olderTables.ts';
import { masterKeysOf, newTextKey } from '../../support/stores/textKeys.ts';
import { startEventStoreDbServer } from '../../support/servers/eventstoredb/eventStoreDbServer.ts';
import { startScriptedModel } from '../../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile } from '../../support/http/service.ts';
import {
  createTestDatabase,
  execute,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import { openActive } from '../../support/servers/postgres/postgresProjector.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { startCliWith } from '../../support/processes/cliProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { testMasterKeyFile } from '../../support/stores/masterKeyFile.ts';
import { testSigningKeyFile } from '../../support/builders/signingKey.ts';

const server = await startPostgresServer();
const NOWHERE = 'esdb://127.0.0.1:1?tls=false';
const silent = createLogger('silent');

function suite(serverUrl: string): void {
  const id = randomUUID().replaceAll('-', '');
  const [owner, service] = [`turnlog_owner_${id}`, `Turnlog service ${id}`];
  let database: TestDatabase;
  let urls: { owner: string; service: string };

  function as(role: string): string {
    const url = new URL(database.url);
    url.username = encodeURIComponent(role);
    url.password = 'a-password';
    return url.href;
  }

  beforeEach(async () => {
    database = await createTestDatabase(serverUrl);
    urls = { owner: as(owner), service: as(service) };
    await execute(
      database.url,
      `CREATE ROLE ${owner} LOGIN PASSWORD 'a-password'; CREATE ROLE "${service}" LOGIN PASSWORD 'a-password';
       DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO ${owner}', current_database()); END $$`,
    );
  });
  afterEach(async () => {
    await database.drop();
    await execute(serverUrl, `DROP ROLE ${owner}; DROP ROLE "${service}"`);
  });

  const migrate = (url: string, ...grant: string[]) =>
    startCliWith({ EVENTSTOREDB_URL: NOWHERE, DATABASE_URL: url }, 'database', 'migrate', ...grant)
      .ended;

  test('a service keeps, wraps anew and destroys keys of texts', async () => {
    expect(await migrate(urls.owner, '--grant', service)).toMatchObject({ code: 0 });
    const store = openPostgresKeyStore({ databaseUrl: urls.service });
    const key = masterKeysOf().wrap(newTextKey());
    await store.insert([key]);
    await store.rewrap([{ ...key, wrapped: masterKeysOf().wrap(newTextKey()).wrapped }]);
    await store.beginErasure('session-1', 'why');
    expect(await store.listErasures(1)).toEqual([{ stream: 'session-1', why: 'why' }]);
    await store.endErasure('session-1', [key.key_id]);
    expect(await store.find([key.key_id])).toEqual(new Map([[key.key_id, 'destroyed']]));
    expect(await store.listErasures(1)).toEqual([]);
    await store.close();
  });

  test('the role of a service that may not migrate is told so by the key store', async () => {
    const store = openPostgresKeyStore({ databaseUrl: urls.service });
    await expect(store.list({ limit: 1 })).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringContaining('database migrate --grant'),
    });
    await store.close();
  });

  test('the owner migrates and grants; api and projector run, read models are rebuilt and older ones dropped, and nothing was created by the role', async () => {
    const folder = await temporaryFolder();
    const eventStore = await startEventStoreDbServer();
    const model = await startScriptedModel({ text: 'Hello.' });
    const older = await openActive(urls.owner, postgresVersion(OLDER_TABLES));
    await older.complete();
    await older.close();
    expect(await migrate(urls.owner, '--grant', service)).toMatchObject({
      code: 0,
      out: expect.stringContaining(service),
    });
    const config = parseConfig({
      PORT: '0',
      DATA_DIR: `${folder}/none`,
      EVENTSTOREDB_URL: eventStore.connectionString,
      DATABASE_URL: urls.service,
      MASTER_KEY_FILE: testMasterKeyFile(),
      LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
      MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
      BOOTSTRAP_API_KEY: `${TEST_KEY}-${id}`,
      VISIBILITY_WAIT_MS: '20000',
      DATABASE_POOL_SIZE: '2',
      CONSOLE: 'off',
    });
    const start = (name: 'api' | 'projector') =>
      startService(config, silent, { services: [name], signal: new AbortController().signal });
    const [projector, api] = await Promise.all([start('projector'), start('api')]);
    const { get, post } = apiClient(api.url, `${TEST_KEY}-${id}`);
    const agent = (await post('/v1/agents', { name: 'A', instruction: 'B', model: 'scripted' }))
      .body.data.agent_id as string;
    expect(await post(`/v1/agents/${agent}/run`, { input: 'Hi' })).toMatchObject({ status: 200 });

    await Promise.all(Array.from({ length: 40 }, () => get('/v1/agents')));
    const connections = await execute(
      database.url,
      `SELECT count(*)::integer AS count FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'turnlog queries'`,
    );
    expect(connections[0]!['count']).toBeLessThanOrEqual(4);

    const operator = await openOperator(config, silent);
    const signal = new AbortController().signal;
    expect(await operator.rebuild(signal, () => undefined)).toBe(true);
    await operator.close();
    expect((await get('/v1/agents')).body.data).toHaveLength(1);
    await api.stop();
    await projector.stop();

    const schemas = await execute(
      database.url,
      "SELECT nspname, nspowner::regrole::text AS owner FROM pg_namespace WHERE nspname ~ '^turnlog_v' ORDER BY 1",
    );
    expect(schemas).toEqual([{ nspname: liveSchema(VERSION), owner }]);
    expect(
      await execute(
        urls.service,
        "SELECT has_database_privilege(current_database(), 'CREATE') AS may",
      ),
    ).toEqual([{ may: false }]);
    await model.close();
    await eventStore.close();
    await rm(folder, { recursive: true });
  });

  test('a role that was granted before keeps its rights through later migrations, and may not write what the owner runs', async () => {
    await migrate(urls.owner, '--grant', service);
    await execute(urls.owner, 'CREATE TABLE turnlog.later (what text)');
    expect((await migrate(urls.owner)).out).toContain(service);
    expect(await execute(urls.service, 'SELECT * FROM turnlog.later')).toEqual([]);
    await expect(execute(urls.service, "UPDATE turnlog.versions SET ddl = ''")).rejects.toThrow(
      'permission denied',
    );
  });

  test('a role that was granted before uses new tables once the owner of the database has migrated', async () => {
    await migrate(urls.owner, '--grant', service);
    await execute(
      urls.owner,
      'DROP TABLE turnlog.tlog_findings, turnlog.replay_attempts; DELETE FROM turnlog.migrations WHERE number >= 12',
    );
    await checkConnectivity(urls.owner);
    const reader = openPostgresTileReader(urls.service);
    expect(await reader.findings.exchange({ doubt: 'A witness.' })).toEqual([]);
    await reader.findings.withdraw();
    await reader.close();
    const attempts = openPostgresReplayAttempts(urls.service);
    await attempts.keepOnly([]);
    await attempts.close();
  });

  test('without the command a service says what its role lacks, and who mends it', async () => {
    const refused = {
      code: 'configuration_invalid',
      message: expect.stringMatching(/permission denied.*database migrate --grant/),
    };
    await expect(checkConnectivity(urls.service)).rejects.toMatchObject(refused);
    await checkConnectivity(urls.owner);
    await expect(checkConnectivity(urls.service)).rejects.toMatchObject(refused);
    await migrate(urls.owner, '--grant', service);
    await checkConnectivity(urls.service);
    await execute(urls.owner, `REVOKE UPDATE ON turnlog.instances FROM "${service}"`);
    await expect(checkConnectivity(urls.service)).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringContaining('lacks rights in PostgreSQL: UPDATE on turnlog.instances.'),
    });
  });

  test('the command refuses a role that there is not, and one that is not the owner', async () => {
    expect(await migrate(urls.owner, '--grant', 'nobody_here')).toMatchObject({
      code: 1,
      err: expect.stringContaining('CREATE ROLE'),
    });
    expect(await migrate(urls.service)).toMatchObject({
      code: 1,
      err: expect.stringContaining('lacks rights'),
    });
  });
}

if (server) {
  describe('a role that may create nothing', () => suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('a role that may create nothing');
}
