/** `text-keys`: counting, rotating and reconciling the keys of texts, and what is refused. */
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { openSqliteKeyStore } from '../../../infra/sqlite/keyStore/keyStore.ts';
import { readMasterKeys } from '../../../infra/files/masterKeyFile.ts';
import { openInstance } from '../../../services/compose/embedded/instance.ts';
import { locateReadModels } from '../../../services/compose/logLocation.ts';
import { openTextKeys } from '../../../services/compose/textKeys.ts';
import { rotateKeys } from '../../../shared/eventlog/encryption/rotateKeys.ts';
import { newMasterKey } from '../../../shared/eventlog/encryption/masterKeys.ts';
import type { KeyStore, WrappedKey } from '../../../shared/ports/keyStore.ts';
import { newTextKey, seal } from '../../support/stores/textKeys.ts';
import { runCli, startCliWith } from '../../support/processes/cliProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let parent: string;
let folder: string;
beforeEach(async () => {
  parent = await temporaryFolder();
  folder = join(parent, 'data');
  const store = await openSqliteEventStore({ folder });
  await store.append('account-1', 'no_stream', [event('account.opened.v1', {})]);
  await store.close();
});
afterEach(() => rm(parent, { recursive: true }));

const event = (type: string, data: object) => ({
  id: crypto.randomUUID(),
  type,
  data: JSON.stringify(data),
  metadata: '{}',
});

const place = (masterKeyFile?: string) =>
  ({
    kind: 'embedded',
    dataFolder: folder,
    log: { folder },
    keysFolder: folder,
    masterKeyFile,
  }) as const;

/** Works on the key store as a service does. */
async function withKeys<Result>(work: (store: KeyStore) => Promise<Result>): Promise<Result> {
  const store = await openSqliteKeyStore({ folder });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Keeps new keys as a service with this master key file does, by default its own. */
async function keep(count: number, masterKeyFile?: string): Promise<WrappedKey[]> {
  const { store, masterKeys } = await openTextKeys(place(masterKeyFile));
  const keys = Array.from({ length: count }, () => masterKeys.wrap(newTextKey()));
  await store.insert(keys);
  await store.close();
  return keys;
}

const own = (): string => join(folder, 'master.key');

/** A master key file with a new key before those of the folder's own file. */
async function withNewMasterKey(): Promise<string> {
  const file = join(parent, 'new.key');
  await writeFile(file, `${newMasterKey()}\n${await readFile(own(), 'utf8')}`, { mode: 0o600 });
  return file;
}

const cli = async (...args: string[]) => {
  const { code, out, err } = await runCli(folder, '--json', 'text-keys', ...args);
  return { code, ...(JSON.parse(code === 0 ? out : err || out) as Record<string, unknown>) };
};
const cliWith = async (file: string, ...args: string[]) => {
  const env = { DATA_DIR: folder, MASTER_KEY_FILE: file };
  const { code, out, err } = await startCliWith(env, '--json', ...args).ended;
  return { code, ...(JSON.parse(out || err) as Record<string, unknown>) };
};

const failure = (problem: string) => ({
  code: 1,
  error: { code: 'configuration_invalid', message: expect.stringContaining(problem) },
});

describe('text-keys', () => {
  test('status counts keys by their master key, and names open erasures', async () => {
    const [first] = await keep(3);
    await withKeys(async (store) => {
      await store.endErasure('session-1', [first!.key_id]);
      await store.beginErasure('session-2', 'why');
    });
    expect(await cli('status')).toEqual({
      code: 0,
      master_keys: [{ master_key_id: first!.master_key_id, keys: 2 }],
      destroyed: 1,
      open_erasures: ['session-2'],
      complete: true,
      erased_with_keys: { count: 0, streams: [] },
    });
  });

  test('new-master writes a file that replaces the master key file: the new key first, and all others', async () => {
    await keep(1);
    const [before] = readMasterKeys(own()).ids;
    const out = join(parent, 'next.key');
    const written = { code: 0, file: out, earlier_master_key_ids: [before] };
    expect(await cli('new-master', '--out', out)).toMatchObject(written);
    expect(readMasterKeys(out).ids).toEqual([expect.not.stringMatching(before), before]);
    expect((await stat(out)).mode & 0o777).toBe(0o600);
    const last = join(parent, 'last.key');
    expect(await cli('new-master', '--last', '--out', last)).toMatchObject({ code: 0 });
    expect(readMasterKeys(last).ids).toEqual([before, expect.not.stringMatching(before)]);
  });

  test('new-master replaces no file, and writes none that lacks a master key in use', async () => {
    await keep(1);
    const before = await readFile(own(), 'utf8');
    expect(await cli('new-master', '--out', own())).toEqual(failure('it exists'));
    expect(await readFile(own(), 'utf8')).toBe(before);
    await rename(own(), join(parent, 'moved.key'));
    const out = join(parent, 'next.key');
    expect(await cli('new-master', '--out', out)).toEqual(failure('does not have'));
    expect(await readdir(parent)).not.toContain('next.key');
  });

  test('rotate wraps all keys by the first master key, says which is of no use any more, and has nothing to do the next time', async () => {
    const keys = await keep(1_200);
    await withKeys((store) => store.endErasure('session-1', [keys[0]!.key_id]));
    const file = await withNewMasterKey();
    const [current, older] = readMasterKeys(file).ids;
    const rotated = { code: 0, complete: true, missing: 0, master_key_id: current };
    expect(await cliWith(file, 'text-keys', 'rotate')).toEqual({
      ...rotated,
      looked_at: 1_199,
      wrapped_anew: 1_199,
      unused_master_keys: [older],
    });
    expect(await cliWith(file, 'text-keys', 'rotate')).toMatchObject({
      ...rotated,
      wrapped_anew: 0,
    });
    await writeFile(file, (await readFile(file, 'utf8')).split('\n')[0]!);
    const masterKeys = readMasterKeys(file);
    const found = await withKeys((store) => store.find(keys.map(({ key_id }) => key_id)));
    expect(found.get(keys[0]!.key_id)).toBe('destroyed');
    for (const { key_id } of keys.slice(1))
      expect(masterKeys.unwrap(found.get(key_id) as WrappedKey).id).toBe(key_id);
  }, 60_000);

  test('rotate leaves a key alone that it can not open, and fails', async () => {
    const [moved] = await keep(3);
    await withKeys(async (store) => {
      const other = { ...moved!, key_id: newTextKey().id };
      await store.insert([other]);
    });
    const file = await withNewMasterKey();
    expect(await cliWith(file, 'text-keys', 'rotate')).toMatchObject({
      code: 1,
      complete: false,
      wrapped_anew: 3,
      missing: 1,
      unused_master_keys: [],
    });
    const told = await startCliWith(
      { DATA_DIR: folder, MASTER_KEY_FILE: file },
      'text-keys',
      'rotate',
    ).ended;
    expect(told.out).toContain("can't be unwrapped with its master key");
  });

  test('a rotation that is interrupted goes on the next time, and passes over what it did', async () => {
    await keep(1_200);
    const { store, masterKeys } = await openTextKeys(place(await withNewMasterKey()));
    const stop = new AbortController();
    const stopAfterPage = () => stop.abort();
    const rotation = { store, masterKeys, onProgress: stopAfterPage };
    const first = await rotateKeys({ ...rotation, signal: stop.signal });
    expect(first.wrapped_anew).toBeGreaterThan(0);
    expect(first.wrapped_anew).toBeLessThan(1_200);
    const second = await rotateKeys({ ...rotation, signal: new AbortController().signal });
    expect(first.wrapped_anew + second.wrapped_anew).toBe(1_200);
    expect(await store.count()).toEqual(new Map([[masterKeys.ids[0], 1_200]]));
    await store.close();
  });

  test('reconcile destroys nothing where no transparency log proves the erasure, and says why', async () => {
    const [key] = await keep(1);
    const log = await openSqliteEventStore({ folder });
    const erased = (key_ids: unknown) => event('session.erased.v1', { reason: 'request', key_ids });
    await log.append('session-1', 'no_stream', [erased([key!.key_id])]);
    await log.append('webhook-2', 'no_stream', [event('webhook.erased.v1', { key_ids: 'all' })]);
    await log.close();
    expect(await cli('reconcile', '--apply')).toMatchObject({
      code: 1,
      complete: true,
      applied: true,
      events: 3,
      erasures: 2,
      destroyed_again: 0,
      kept: 1,
      streams: [
        {
          stream: 'session-1',
          destroy: [],
          keep: [{ key_id: key!.key_id, reason: 'no text of the stream is encrypted with it' }],
        },
      ],
    });
    expect(await cli('status')).toMatchObject({
      code: 1,
      destroyed: 0,
      erased_with_keys: { count: 1, streams: ['session-1'] },
    });
  });
});

describe('the keys of a data folder', () => {
  const open = async (masterKeyFile?: string): Promise<string> => {
    try {
      await (await openTextKeys(place(masterKeyFile))).store.close();
      return 'opened';
    } catch (error) {
      expect(error).toMatchObject({ code: 'configuration_invalid' });
      return (error as Error).message;
    }
  };

  test('without their master key are refused, and no other one is made', async () => {
    await keep(1);
    await rename(own(), `${own()}.away`);
    expect(await open()).toContain('Restore it from a backup');
    expect(await cli('rotate')).toMatchObject(failure('is gone'));
    expect(await open(`${own()}.away`)).toBe('opened');
  });

  test('get their master key where a first start ended before it was made', async () => {
    await withKeys(async () => undefined);
    expect(await open()).toBe('opened');
  });

  test('are not begun anew where the key store is gone', async () => {
    await keep(1);
    await rename(join(folder, 'keys.db'), join(parent, 'keys.db'));
    expect(await open()).toContain('The keys of all texts are gone');
    await rename(join(parent, 'keys.db'), join(folder, 'keys.db'));
    expect(await open()).toBe('opened');
  });

  test('are not begun anew where both are gone and the log has texts; only who says so goes on', async () => {
    const log = await openSqliteEventStore({ folder });
    const text = seal('hello', newTextKey());
    await log.append('account-2', 'no_stream', [event('account.opened.v1', { name: text })]);
    await log.close();
    const before = (await readdir(folder)).filter((name) => !name.startsWith('events.db'));
    expect(await open()).toContain(
      `there is no ${join(folder, 'keys.db')} and no ${join(folder, 'master.key')}`,
    );
    const master = join(parent, 'other.key');
    await writeFile(master, newMasterKey(), { mode: 0o600 });
    expect(await open(master)).toContain('The keys of all texts are gone');
    expect(await cli('status')).toMatchObject(failure('The keys of all texts are gone'));
    const after = (await readdir(folder)).filter((name) => !name.startsWith('events.db'));
    expect(after).toEqual(before);
    const none = await cliWith(join(parent, 'mistyped.key'), 'text-keys', 'begin-anew');
    expect(none).toMatchObject(failure('there is none'));
    expect(await readdir(folder)).not.toContain('keys.db');
    expect(await cli('begin-anew')).toMatchObject({ key_store: join(folder, 'keys.db') });
    expect(await open()).toBe('opened');
    expect(await cli('begin-anew')).toMatchObject(failure('nothing was done'));
  });

  test('are not begun anew for a cluster by a folder that had them, whose KEYS_DIR has none', async () => {
    const keysFolder = join(parent, 'mistyped');
    const log = { cluster: 'none' };
    const openFor = async (masterKeyFile?: string) => {
      await (await openTextKeys({ ...place(masterKeyFile), log, keysFolder })).store.close();
    };
    const master = join(parent, 'other.key');
    await writeFile(master, newMasterKey(), { mode: 0o600 });
    await openInstance({ dataFolder: folder, log });
    // Without read models of the cluster, the folder was used for another log.
    await openFor();
    await rm(keysFolder, { recursive: true });
    await mkdir(locateReadModels({ dataFolder: folder, log }));
    for (const masterKeyFile of [undefined, master])
      await expect(openFor(masterKeyFile)).rejects.toMatchObject({
        code: 'configuration_invalid',
        message: expect.stringContaining('The keys of all texts are gone'),
      });
    expect(await readdir(parent)).not.toContain('mistyped');
  });

  test('are set aside and begun anew where their master key is gone, and come back with it', async () => {
    const keys = await keep(3);
    await withKeys(async (store) => {
      await store.endErasure('session-1', [keys[0]!.key_id]);
      await store.beginErasure('session-2', 'why');
    });
    expect(await cli('begin-anew')).toMatchObject(failure('nothing was done'));
    await rename(own(), join(parent, 'lost.key'));
    expect(await open()).toContain('text-keys begin-anew');
    const user = await openSqliteKeyStore({ folder });
    expect(await cli('begin-anew')).toMatchObject({
      code: 1,
      error: { code: 'store_unavailable' },
    });
    await user.close();
    // What a failure leaves can be tried again.
    expect((await readdir(folder)).filter((name) => name.startsWith('keys-'))).toEqual([]);
    const { set_aside, ...begun } = (await cli('begin-anew')) as Record<string, unknown>;
    expect(begun).toEqual({ code: 0, key_store: join(folder, 'keys.db') });
    expect(await readdir(set_aside as string)).toEqual(['keys.db']);
    const records = { destroyed: 1, open_erasures: ['session-2'] };
    expect(await cli('status')).toMatchObject({ code: 0, master_keys: [], ...records });
    await keep(1);
    expect(await cli('begin-anew')).toMatchObject(failure('nothing was done'));
    const both = [own(), join(parent, 'lost.key')].map((file) => readFile(file, 'utf8'));
    await writeFile(own(), (await Promise.all(both)).join('\n'));
    expect(await cli('import', set_aside as string)).toMatchObject({ code: 0, imported: 2 });
  });

  test('are begun anew with a master key file that opens none of them', async () => {
    await keep(1);
    const other = join(parent, 'other.key');
    await writeFile(other, newMasterKey(), { mode: 0o600 });
    expect(await cliWith(join(parent, 'mistyped.key'), 'text-keys', 'begin-anew')).toMatchObject(
      failure('there is none'),
    );
    expect(await cliWith(other, 'text-keys', 'begin-anew')).toMatchObject({
      code: 0,
      set_aside: expect.stringContaining(folder),
    });
    expect(await open(other)).toBe('opened');
  });

  test('are made beside a log from before there were any', async () => {
    const log = await openSqliteEventStore({ folder });
    const plain = { name: '"box":"', nested: { box: 1 } };
    await log.append('account-2', 'no_stream', [event('account.opened.v1', plain)]);
    await log.close();
    expect(await open()).toBe('opened');
  });

  test('are not used with the master key of another store', async () => {
    const [key] = await keep(1);
    const file = join(parent, 'another.key');
    await writeFile(file, newMasterKey(), { mode: 0o600 });
    expect(await open(file)).toContain(`the master key ${key!.master_key_id}`);
    expect(await open(await withNewMasterKey())).toBe('opened');
  });
});
