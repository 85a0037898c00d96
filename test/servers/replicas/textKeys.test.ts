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
import { runCliWith } from '../../support/processes/cliProcess.ts';
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

  test('keys of a folder are imported into a database with tables of Turnlog', async () => {
    const database = await createTestDatabase(server.url);
    const master = await newMasterKeyFile('own.key');
    const { store: from, masterKeys } = await openTextKeys({
      kind: 'embedded',
      dataFolder: folder,
      log: { folder },
      keysFolder: folder,
      masterKeyFile: master,
    });
    const keys = Array.from({ length: 600 }, () => masterKeys.wrap(newTextKey()));
    await from.insert(keys);
    await from.endErasure('session-1', [keys[0]!.key_id]);
    await from.beginErasure('session-2', 'why');
    await from.close();
    const cli = async (masterKeyFile: string, ...args: string[]) => {
      const env = {
        EVENTSTOREDB_URL: 'esdb://127.0.0.1:1?tls=false',
        DATABASE_URL: database.url,
        MASTER_KEY_FILE: masterKeyFile,
      };
      const { code, out, err } = await runCliWith(env, '--json', ...args);
      return { code, ...(JSON.parse(out || err) as Record<string, unknown>) };
    };
    const failed = { code: 1, error: { code: 'configuration_invalid' } };
    expect(await cli(master, 'text-keys', 'import', folder)).toMatchObject(failed);
    expect(await cli(master, 'database', 'migrate')).toMatchObject({ code: 0 });
    const another = await newMasterKeyFile('another.key');
    expect(await cli(another, 'text-keys', 'import', folder)).toMatchObject(failed);
    const done = { code: 0, complete: true, destroyed: 1, open_erasures: 1 };
    expect(await cli(master, 'text-keys', 'import', folder)).toEqual({
      ...done,
      imported: 599,
      present: 0,
    });
    expect(await cli(master, 'text-keys', 'import', folder)).toMatchObject({
      ...done,
      present: 599,
    });
    const { store } = await openTextKeys(place(database.url, master));
    const counts = new Map([
      [masterKeys.ids[0], 599],
      ['destroyed', 1],
    ]);
    expect(await store.count()).toEqual(counts);
    expect(await store.listErasures(2)).toEqual([{ stream: 'session-2', why: 'why' }]);
    await store.close();
    await database.drop();
  });

  afterAll(server.close);
} else {
  withoutPostgres('keys of texts in PostgreSQL');
}
