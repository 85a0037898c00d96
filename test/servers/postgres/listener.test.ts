import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from '@jest/globals';
import { plainEnvironment } from '../../support/processes/plainEnvironment.ts';
import { createTestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';

const server = await startPostgresServer();
const root = fileURLToPath(new URL('../../../', import.meta.url));

/** Sends read models a hundred notifications in one packet. Prints the number of their queries. */
const TOLD_AT_ONCE = `
  import { Client } from 'pg';
  import { migrate } from './infra/postgres/migrate.ts';
  import { openPostgresReadModels } from './infra/postgres/readModels/readModels.ts';
  import { channelOf, VERSION, VERSIONS_CHANNEL } from './infra/postgres/readModels/schema.ts';

  const databaseUrl = process.env.DATABASE;
  const teller = new Client(databaseUrl);
  await teller.connect();
  await migrate(teller);
  const readModels = await openPostgresReadModels({ databaseUrl, poolSize: 1 });
  const listens = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'turnlog listener' AND query LIKE 'SELECT version%'";
  for (let tries = 0; tries < 1_000 && (await teller.query(listens)).rowCount === 0; tries += 1)
    await new Promise((resolve) => setTimeout(resolve, 20));
  const tell = (number) =>
    \`SELECT pg_notify('\${VERSIONS_CHANNEL}', '\${number}'), pg_notify('\${channelOf(VERSION)}', '?\${number}');\`;
  let looks = 0;
  const { query } = Client.prototype;
  Client.prototype.query = function (...parameters) {
    if (/^SELECT (version|position),/.test(parameters[0])) looks += 1;
    return query.apply(this, parameters);
  };
  await teller.query(Array.from({ length: 50 }, (_, number) => tell(number)).join(''));
  await new Promise((resolve) => setTimeout(resolve, 500));
  console.log(looks);
  await readModels.close();
  await teller.end();
`;

function suite(serverUrl: string): void {
  test('a connection is asked one thing after the other, and no more often than needed, whatever it is told meanwhile', async () => {
    const database = await createTestDatabase(serverUrl);
    const child = spawn(process.execPath, ['--input-type=module', '--eval', TOLD_AT_ONCE], {
      cwd: root,
      env: { ...plainEnvironment(), DATABASE: database.url },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let looks = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (looks += text));
    let told = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (told += text));
    const [code] = (await once(child, 'close')) as [number];
    await database.drop();
    expect({ code, told }).toEqual({ code: 0, told: '' });
    expect(Number(looks)).toBeGreaterThanOrEqual(2);
    expect(Number(looks)).toBeLessThan(20);
  }, 60_000);
}

if (server) {
  afterAll(() => server.close());
  describe('what listens to PostgreSQL', () => suite(server.url));
} else withoutPostgres('what listens to PostgreSQL');
