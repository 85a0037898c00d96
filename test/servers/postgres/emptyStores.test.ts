/** Operator commands on a cluster and a database which no service has ever used. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startEventStoreDbNode } from '../../support/servers/eventstoredb-node/index.ts';
import { createTestDatabase, execute } from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { startCliWith } from '../../support/processes/cliProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { testMasterKeyFile } from '../../support/stores/masterKeyFile.ts';

let folder: string;
let node: Awaited<ReturnType<typeof startEventStoreDbNode>>;
beforeAll(async () => {
  folder = await temporaryFolder();
  node = await startEventStoreDbNode({ folder: join(folder, 'node') });
});
afterAll(async () => {
  await node.close();
  await rm(folder, { recursive: true });
});

const cli = (env: Record<string, string>, ...args: string[]) =>
  startCliWith({ DATA_DIR: join(folder, 'data'), ...env }, ...args).ended;

describe('an empty log in a cluster', () => {
  test.each([
    [['audit', 'verify']],
    [['accounts', 'list']],
    [['events', 'tail']],
    [['log', 'show']],
    [['events', 'copy', '--from', 'env:EVENTSTOREDB_URL', '--to', 'nothing']],
  ])('is an error that names its hosts: %j', async (args) => {
    const { code, out, err } = await cli({ EVENTSTOREDB_URL: node.connectionString }, ...args);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/^The event log in esdb:\/\/[\w.:,]+ is empty\. [^\n]+\n$/);
  });
});

const server = await startPostgresServer();
if (server) {
  test('a database without tables of Turnlog is an error, and stays without', async () => {
    const database = await createTestDatabase(server.url);
    const other = await createTestDatabase(server.url);
    const env = {
      EVENTSTOREDB_URL: node.connectionString,
      DATABASE_URL: database.url,
      MASTER_KEY_FILE: testMasterKeyFile(),
    };
    // To open an account makes the tables: its name needs a key.
    const elsewhere = { ...env, DATABASE_URL: other.url };
    expect((await cli(elsewhere, 'accounts', 'open', 'first')).code).toBe(0);
    for (const args of [
      ['accounts', 'list'],
      ['projections', 'rebuild'],
    ]) {
      const { code, out, err } = await cli(env, ...args);
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toMatch(/^The database that DATABASE_URL names has no tables of Turnlog\./);
    }
    const schemas = await execute(
      database.url,
      "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'turnlog%'",
    );
    expect(schemas).toEqual([]);
    expect((await cli(env, 'database', 'migrate', '--json')).out).toBe('{"roles":[]}\n');
    expect((await cli(elsewhere, 'accounts', 'list')).out).toMatch(/ first\n$/);
    await database.drop();
    await other.drop();
  }, 120_000);
  afterAll(server.close);
} else {
  withoutPostgres('an operator command on a new database');
}
