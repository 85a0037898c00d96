/** A database that the release before has worked in is migrated while it is used. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Client } from 'pg';
import { migrate } from '../../../infra/postgres/migrate.ts';
import {
  createTestDatabase,
  execute,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';

const server = await startPostgresServer();
const FOLDER = new URL('../../../infra/postgres/migrations/', import.meta.url);
/** The last one of the release before. */
const BEFORE = 4;
/** More than a reader may have to wait behind a migration. */
const HELD_MS = 8_000;

function suite(serverUrl: string): void {
  let database: TestDatabase;
  let clients: Client[];

  async function connect(): Promise<Client> {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    clients.push(client);
    return client;
  }

  beforeEach(async () => {
    database = await createTestDatabase(serverUrl);
    clients = [];
    const owner = await connect();
    await owner.query(`CREATE SCHEMA turnlog;
      CREATE TABLE turnlog.migrations (number integer PRIMARY KEY, file text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`);
    for (const file of readdirSync(FOLDER).toSorted()) {
      const number = Number(file.slice(0, 3));
      if (number > BEFORE) continue;
      await owner.query(readFileSync(new URL(file, FOLDER), 'utf8'));
      await owner.query('INSERT INTO turnlog.migrations (number, file) VALUES ($1, $2)', [
        number,
        file,
      ]);
    }
    await owner.query(`INSERT INTO turnlog.projections (version, slot, generation, position, complete)
      VALUES (7, 'live', 3, '0000000000000009', true);
      INSERT INTO turnlog.instances VALUES ('before', now(), now())`);
  });
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await database.drop();
  });

  test('what the release before has noted is kept, and nothing is made up of what it did not', async () => {
    await migrate(await connect());
    expect(
      await execute(
        database.url,
        'SELECT version, slot, generation, position, complete, log_id, event_position, log_changed FROM turnlog.projections',
      ),
    ).toEqual([
      {
        version: 7,
        slot: 'live',
        generation: 3,
        position: '0000000000000009',
        complete: true,
        log_id: null,
        event_position: null,
        log_changed: null,
      },
    ]);
    expect(
      await execute(database.url, 'SELECT instance_id, read_models FROM turnlog.instances'),
    ).toEqual([{ instance_id: 'before', read_models: null }]);
  });

  test('nobody waits long behind a migration that a backup holds up, and it is done after that', async () => {
    const backup = await connect();
    await backup.query('BEGIN; SELECT FROM turnlog.projections');
    const migrated = migrate(await connect());
    const reader = await connect();
    const began = performance.now();
    let longest = 0;
    while (performance.now() - began < HELD_MS) {
      const asked = performance.now();
      await Promise.race([
        reader.query('SELECT FROM turnlog.projections'),
        sleep(HELD_MS, undefined, { ref: false }),
      ]);
      longest = Math.max(longest, performance.now() - asked);
      await sleep(50);
    }
    await backup.query('COMMIT');
    await migrated;
    expect(longest).toBeLessThan(HELD_MS - 2_000);
    const later = `SELECT FROM turnlog.migrations WHERE number > ${BEFORE}`;
    expect(await execute(database.url, later)).not.toEqual([]);
  });
}

if (server) {
  describe('the migration of a database in use', () => suite(server.url));
  afterAll(server.close);
} else {
  withoutPostgres('the migration of a database in use');
}
