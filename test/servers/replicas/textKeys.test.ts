/** The keys of texts of services that share a database. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test } from '@jest/globals';
import { openTextKeys, textKeysPart } from '../../../services/compose/textKeys.ts';
import { newMasterKey } from '../../../shared/eventlog/encryption/masterKeys.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import { newTextKey } from '../../support/stores/textKeys.ts';
import { createTestDatabase, execute } from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { eventually } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => rm(folder, { recursive: true }));

const place = (databaseUrl: string, masterKeyFile?: string) =>
  ({ kind: 'replica', databaseUrl, log: { cluster: 'none' }, masterKeyFile }) as const;

async function newMasterKeyFile(name: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, newMasterKey(), { mode: 0o600 });
  return file;
}

const NOBODY = 'postgres://127.0.0.1:1/none';

test('without MASTER_KEY_FILE they are refused, with how to make one', async () => {
  await expect(openTextKeys(place(NOBODY))).rejects.toMatchObject({
    code: 'configuration_invalid',
    message: expect.stringContaining('text-keys new-master --out master.key'),
  });
});

test('they are opened while the database is away, which each use says', async () => {
  const { store } = await openTextKeys(place(NOBODY, await newMasterKeyFile('a.key')));
  await expect(store.find(['never-was-a-key-'])).rejects.toMatchObject({
    code: 'store_unavailable',
    retriable: true,
  });
  await store.close();
});

const server = await startPostgresServer();
if (server) {
  test('a process with the master key of another database does not get ready', async () => {
    const database = await createTestDatabase(server.url);
    const [own, another] = [
      await newMasterKeyFile('own.key'),
      await newMasterKeyFile('another.key'),
    ];
    const keys = await openTextKeys(place(database.url, own));
    const prepare = (opened: typeof keys) =>
      textKeysPart(opened, createLogger('silent')).prepare!(new AbortController().signal);
    const other = await openTextKeys(place(database.url, another));
    await prepare(other);
    await keys.store.insert([keys.masterKeys.wrap(newTextKey())]);
    await prepare(keys);
    await expect(prepare(other)).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringContaining(`the master key ${keys.masterKeys.ids[0]}`),
    });
    await keys.store.close();
    await other.store.close();
    await database.drop();
  });

  test('an erasure has the dead rows of its keys cleared, where the role owns the table', async () => {
    const database = await createTestDatabase(server.url);
    const { store, masterKeys } = await openTextKeys(
      place(database.url, await newMasterKeyFile('own.key')),
    );
    const key = masterKeys.wrap(newTextKey());
    await store.insert([key]);
    await store.endErasure('session-1', [key.key_id]);
    await eventually(
      () =>
        execute(
          database.url,
          "SELECT vacuum_count::integer AS times FROM pg_stat_user_tables WHERE relname = 'text_keys'",
        ),
      ([row]) => (row?.['times'] as number) > 0,
    );
    await store.close();
    await database.drop();
  });

  afterAll(server.close);
} else {
  withoutPostgres('keys of texts in PostgreSQL');
}
