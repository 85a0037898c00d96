/** `text-keys import`: the keys of another folder in the configured key store. */
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openSqliteKeyStore } from '../../../infra/sqlite/keyStore/keyStore.ts';
import { createMasterKeyFile, readMasterKeys } from '../../../infra/files/masterKeyFile.ts';
import { importKeys } from '../../../shared/eventlog/encryption/importKeys.ts';
import type { KeySource, KeyStore, WrappedKey } from '../../../shared/ports/keyStore.ts';
import { runCliWith } from '../../support/processes/cliProcess.ts';
import { newTextKey } from '../../support/stores/textKeys.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let parent: string;
let source: string;
let target: string;
beforeEach(async () => {
  parent = await temporaryFolder();
  [source, target] = [join(parent, 'source'), join(parent, 'target')];
});
afterEach(() => rm(parent, { recursive: true }));

const masterOf = (folder: string): string => join(folder, 'master.key');

async function withKeys<Result>(
  folder: string,
  work: (store: KeyStore & KeySource) => Promise<Result>,
): Promise<Result> {
  const store = await openSqliteKeyStore({ folder });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const newKeys = (folder: string, count: number): WrappedKey[] => {
  const masterKeys = readMasterKeys(masterOf(folder));
  return Array.from({ length: count }, () => masterKeys.wrap(newTextKey()));
};

/** A key store with its master key, and this many keys. */
async function createKeys(folder: string, count: number): Promise<WrappedKey[]> {
  await (await openSqliteKeyStore({ folder })).close();
  createMasterKeyFile(masterOf(folder));
  const keys = newKeys(folder, count);
  await withKeys(folder, (store) => store.insert(keys));
  return keys;
}

async function importFrom(folder: string) {
  const env = { DATA_DIR: target };
  const { code, out, err } = await runCliWith(env, '--json', 'text-keys', 'import', folder);
  return { code, ...(JSON.parse(out || err) as Record<string, unknown>) };
}

const failure = (problem: string) => ({
  code: 1,
  error: { code: 'configuration_invalid', message: expect.stringContaining(problem) },
});

test('all keys, destroyed ids and open erasures are imported, and once', async () => {
  const keys = await createKeys(source, 1_200);
  const ids = keys.map(({ key_id }) => key_id);
  await createKeys(target, 0);
  await copyFile(masterOf(source), masterOf(target));
  const own = newKeys(target, 1);
  // The target has destroyed one of the keys, and the source another one that the target has.
  await withKeys(target, async (store) => {
    await store.insert([...own, keys[1]!, keys[2]!]);
    await store.endErasure('session-1', [ids[0]!]);
  });
  await withKeys(source, async (store) => {
    await store.endErasure('session-2', [ids[1]!, 'never-was-a-key-']);
    await store.beginErasure('session-3', 'why');
  });
  const done = { code: 0, complete: true, destroyed: 2, open_erasures: 1 };
  expect(await importFrom(source)).toEqual({ ...done, imported: 1_197, present: 2 });
  expect(await importFrom(source)).toEqual({ ...done, imported: 0, present: 1_199 });
  await withKeys(target, async (store) => {
    expect(await store.listErasures(2)).toEqual([{ stream: 'session-3', why: 'why' }]);
    const found = await store.find([...ids, 'never-was-a-key-', own[0]!.key_id]);
    for (const id of [ids[0]!, ids[1]!, 'never-was-a-key-'])
      expect(found.get(id)).toBe('destroyed');
    const masterKeys = readMasterKeys(masterOf(target));
    for (const { key_id } of [...keys.slice(2), ...own])
      expect(masterKeys.unwrap(found.get(key_id) as WrappedKey).id).toBe(key_id);
  });
});

test('an interrupted import continues the next time', async () => {
  await createKeys(source, 1_200);
  const counts = await withKeys(source, (from) =>
    withKeys(target, async (to) => {
      const stop = new AbortController();
      const onProgress = () => stop.abort();
      const { imported } = await importKeys({ from, to, signal: stop.signal, onProgress });
      const rest = { signal: new AbortController().signal, onProgress: () => undefined };
      return [imported, await importKeys({ from, to, ...rest })];
    }),
  );
  expect(counts).toMatchObject([500, { imported: 700, present: 500 }]);
});

test('keys of another master key are refused until the master key file has it', async () => {
  const [key] = await createKeys(source, 1);
  await createKeys(target, 1);
  expect(await importFrom(source)).toMatchObject(failure(`the master key ${key!.master_key_id}`));
  const both = [target, source].map((folder) => readFile(masterOf(folder), 'utf8'));
  await writeFile(masterOf(target), (await Promise.all(both)).join('\n'));
  expect(await importFrom(source)).toMatchObject({ code: 0, imported: 1 });
});

test('missing stores, the store itself and a backup are refused, and none is created', async () => {
  await createKeys(source, 1);
  expect(await importFrom(source)).toMatchObject(failure(join(target, 'keys.db')));
  await createKeys(target, 1);
  const absent = join(parent, 'absent');
  expect(await importFrom(absent)).toMatchObject(failure('There is no key store'));
  expect(await importFrom(target)).toMatchObject(failure('is the configured key store itself'));
  await writeFile(join(source, 'backup.json'), '{}');
  expect(await importFrom(source)).toMatchObject(failure('holds a backup'));
});
