/** What a start says of a database that can't carry it. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { requireVersion, checkConnectivity } from '../../../infra/postgres/connectivityCheck.ts';
import { openPostgresRebuildStore } from '../../../infra/postgres/readModels/rebuildStore.ts';
import { withoutProgram } from '../../support/processes/debianProgram.ts';
import { PGBOUNCER, startPgBouncer } from '../../support/servers/postgres/pgBouncer.ts';
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
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { testSigningKeyFile } from '../../support/builders/signingKey.ts';
import { testMasterKeyFile } from '../../support/stores/masterKeyFile.ts';

const server = await startPostgresServer();
const SETTINGS = 'statement_timeout, extra_float_digits';

test('a server that is too old is named, with the least version', () => {
  expect(() => requireVersion(130_022)).toThrow(
    expect.objectContaining({
      code: 'configuration_invalid',
      message: 'DATABASE_URL names a PostgreSQL 13 server: Turnlog needs PostgreSQL 14 or later.',
    }),
  );
  requireVersion(140_000);
});

function suite(serverUrl: string): void {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await createTestDatabase(serverUrl);
  });
  afterEach(() => database.drop());

  test('a database that can carry all is migrated, and takes the test again and again', async () => {
    await checkConnectivity(database.url);
    await checkConnectivity(database.url);
    expect(await execute(database.url, 'SELECT FROM turnlog.projections')).toEqual([]);
  });

  test('a server that is away is no fault of the configuration', async () => {
    await expect(checkConnectivity('postgres://127.0.0.1:1/none')).rejects.toMatchObject({
      code: 'store_unavailable',
      retriable: true,
    });
  });

  test('commits outlive a crash whatever the default of the database is', async () => {
    await execute(
      database.url,
      'DO $$ BEGIN EXECUTE format($f$ALTER DATABASE %I SET synchronous_commit = off$f$, current_database()); END $$',
    );
    const store = await openActive(database.url);
    await execute(
      database.url,
      `CREATE TABLE seen (setting text);
       CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         INSERT INTO seen VALUES (TG_ARGV[0] || ': ' || current_setting('synchronous_commit')); RETURN NEW; END $$;
       CREATE TRIGGER moved AFTER UPDATE ON turnlog.projections FOR EACH ROW EXECUTE FUNCTION note('live');
       CREATE TRIGGER switched AFTER DELETE ON turnlog.projections FOR EACH ROW EXECUTE FUNCTION note('switch')`,
    );
    await store.complete();
    const rebuild = await openPostgresRebuildStore({ databaseUrl: database.url });
    await rebuild.publish(() => Promise.resolve());
    const seen = (await execute(database.url, 'SELECT DISTINCT setting FROM seen ORDER BY 1')).map(
      ({ setting }) => setting,
    );
    expect(seen).toContain('live: on');
    expect(seen).toContain('switch: on');
    await store.close();
  });

  if (PGBOUNCER === undefined) withoutProgram('a pooler', 'pgbouncer');
  else
    describe('a pooler', () => {
      test('in transaction mode is named, and no process serves on it', async () => {
        const pooler = await startPgBouncer(database.url, {
          mode: 'transaction',
          ignore: SETTINGS,
        });
        await expect(checkConnectivity(pooler.url)).rejects.toMatchObject({
          code: 'configuration_invalid',
          message: expect.stringContaining('a pooler in transaction mode'),
        });
        const projector = startServerProcess(
          {
            EVENTSTOREDB_URL: 'esdb://127.0.0.1:1?tls=false',
            DATABASE_URL: pooler.url,
            MASTER_KEY_FILE: testMasterKeyFile(),
            LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
          },
          ['--services', 'projector'],
        );
        expect(await projector.exited).toBe(1);
        expect(projector.errors()).toContain('a pooler in transaction mode');
        expect(projector.errors()).not.toContain('is the active one');
        await pooler.close();
      });

      test('that refuses the settings of a session is named', async () => {
        const pooler = await startPgBouncer(database.url, { mode: 'transaction', ignore: '' });
        await expect(checkConnectivity(pooler.url)).rejects.toMatchObject({
          code: 'configuration_invalid',
          message: expect.stringContaining('statement_timeout'),
        });
        await pooler.close();
      });

      test('in session mode will do', async () => {
        const pooler = await startPgBouncer(database.url, { mode: 'session', ignore: SETTINGS });
        await checkConnectivity(pooler.url);
        await pooler.close();
      });
    });
}

if (server) {
  describe('the self-test of a database', () => suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('the self-test of a database');
}
