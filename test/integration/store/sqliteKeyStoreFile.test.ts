/** The file of the SQLite key store: what it never holds, and what it says when it was changed. */
import { copyFile, open, readdir, readFile, rename, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { openForWriting } from '../../../infra/sqlite/eventStore/database.ts';
import { openSqliteKeyStore } from '../../../infra/sqlite/keyStore/keyStore.ts';
import type { WrappedKey } from '../../../shared/ports/keyStore.ts';
import { size } from '../../support/jest/size.ts';
import { masterKeysOf, newTextKey } from '../../support/stores/textKeys.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const masters = [masterKeysOf(), masterKeysOf()];
const newKeys = (count: number): WrappedKey[] =>
  Array.from({ length: count }, () => masters[0]!.wrap(newTextKey()));

let folder: string;
let file: string;
beforeEach(async () => {
  folder = join(await temporaryFolder(), 'data');
  file = join(folder, 'keys.db');
});
afterEach(() => rm(join(folder, '..'), { recursive: true }));

const filesIn = async (inFolder: string): Promise<Buffer[]> =>
  Promise.all((await readdir(inFolder)).map((name) => readFile(join(inFolder, name))));

/** Which of these stand in a file, in whole or in part. */
const leftIn = (files: readonly Buffer[], secrets: readonly Uint8Array[]): Uint8Array[] =>
  secrets.filter((bytes) =>
    [0, 22, 44].some((from) =>
      files.some((all) => all.includes(Buffer.from(bytes).subarray(from, from + 16))),
    ),
  );

describe('a destroyed key', () => {
  test(
    'leaves no byte of any way in which it was wrapped, whatever was kept and wrapped anew before',
    async () => {
      const several = fc.nat({ max: 60 });
      const step = fc.oneof(
        fc.record({ do: fc.constant('insert' as const), count: fc.integer({ min: 1, max: 120 }) }),
        fc.record({ do: fc.constant('rewrap' as const), from: several, by: fc.nat(1) }),
        fc.record({ do: fc.constant('destroy' as const), from: several }),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
          const own = await temporaryFolder();
          const stores = [
            await openSqliteKeyStore({ folder: own }),
            await openSqliteKeyStore({ folder: own }),
          ];
          const [one, other] = stores as [(typeof stores)[0], (typeof stores)[0]];
          const ways = new Map<string, Uint8Array[]>();
          const destroyed: Uint8Array[] = [];
          const some = (from: number): string[] => [...ways.keys()].slice(from, from + 20);
          await one.insert(newKeys(1));
          for (const taken of steps) {
            if (taken.do === 'insert') {
              const keys = newKeys(taken.count);
              for (const { key_id, wrapped } of keys) ways.set(key_id, [wrapped]);
              await one.insert(keys);
            } else if (taken.do === 'rewrap') {
              const found = await other.find(some(taken.from));
              const anew = [...found.values()].map((key) => ({
                ...(key as WrappedKey),
                master_key_id: masters[taken.by]!.ids[0],
                wrapped: newKeys(1)[0]!.wrapped,
              }));
              for (const { key_id, wrapped } of anew) ways.get(key_id)!.push(wrapped);
              await other.rewrap(anew);
            } else {
              const ids = some(taken.from);
              await other.endErasure('session-1', ids);
              destroyed.push(...ids.flatMap((id) => ways.get(id)!));
              for (const id of ids) ways.delete(id);
              expect(leftIn(await filesIn(own), destroyed)).toEqual([]);
            }
          }
          const kept = [...ways.values()].map((all) => all.at(-1)!);
          expect(leftIn(await filesIn(own), kept)).toHaveLength(kept.length);
          for (const store of stores) await store.close();
          expect(leftIn(await filesIn(own), destroyed)).toEqual([]);
          await rm(own, { recursive: true });
        }),
        { numRuns: size({ small: 20, full: 500 }) },
      );
    },
    size({ small: 240_000, full: 1_200_000 }),
  );

  test('is noted until whoever still reads it has gone, and leaves no byte then', async () => {
    const store = await openSqliteKeyStore({ folder });
    const [key] = newKeys(1);
    await store.insert([key!]);
    const backup = new DatabaseSync(file, { readOnly: true });
    backup.exec('BEGIN; SELECT count(*) FROM text_keys');
    await store.beginErasure('session-1', 'why');
    await expect(store.endErasure('session-1', [key!.key_id])).rejects.toMatchObject({
      code: 'store_unavailable',
      retriable: true,
      message: expect.stringContaining('a backup perhaps'),
    });
    expect(await store.listErasures(1)).toEqual([{ stream: 'session-1', why: 'why' }]);
    expect(leftIn(await filesIn(folder), [key!.wrapped])).toHaveLength(1);
    backup.close();
    await store.endErasure('session-1', [key!.key_id]);
    expect(await store.listErasures(1)).toEqual([]);
    expect(leftIn(await filesIn(folder), [key!.wrapped])).toEqual([]);
    await store.close();
  }, 30_000);
});

describe('an erasure', () => {
  const walBytes = async (): Promise<number> => (await stat(`${file}-wal`)).size;

  const written = () => Promise.all([readFile(file), readFile(`${file}-wal`)]);

  test('waits for the disk where it is noted and when its key is destroyed, and a refused one at its end', async () => {
    const store = await openSqliteKeyStore({ folder });
    let level = 'FULL';
    const commits: string[] = [];
    const { exec } = DatabaseSync.prototype;
    const spy = jest.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (
      this: DatabaseSync,
      sql,
    ) {
      level = /synchronous = (\w+)/.exec(sql)?.[1] ?? level;
      if (sql === 'COMMIT') commits.push(level);
      exec.call(this, sql);
    });
    try {
      const [key] = newKeys(1);
      await store.insert([key!]);
      await store.beginErasure('session-1', 'why');
      expect(commits.splice(0)).toEqual(['FULL', 'FULL']);
      // The truncation of the write-ahead file waits for the disk between these two.
      await store.endErasure('session-1', [key!.key_id]);
      expect(commits.splice(0)).toEqual(['NORMAL', 'NORMAL']);
      await store.beginErasure('session-2', 'why');
      await store.endErasure('session-2', []);
      expect(commits).toEqual(['FULL', 'FULL']);
    } finally {
      spy.mockRestore();
      await store.close();
    }
  });

  test('that has ended writes nothing when it is repeated', async () => {
    const store = await openSqliteKeyStore({ folder });
    const [key] = newKeys(1);
    await store.insert([key!]);
    await store.beginErasure('session-1', 'why');
    await store.endErasure('session-1', [key!.key_id]);
    // Empties the write-ahead file of the removal of the note.
    await store.endErasure('session-1', [key!.key_id]);
    expect(await walBytes()).toBe(0);
    const before = await written();
    for (let again = 0; again < 3; again += 1) {
      await store.endErasure('session-1', [key!.key_id]);
      await store.endErasure('session-1', []);
    }
    expect(await written()).toEqual(before);
    await store.beginErasure('session-2', 'why');
    const noted = await written();
    await store.beginErasure('session-2', 'why');
    expect(await written()).toEqual(noted);
    await store.close();
  });

  test('that a process left before its key was out of the write-ahead file is completed', async () => {
    const store = await openSqliteKeyStore({ folder });
    const [key] = newKeys(1);
    await store.insert([key!]);
    const killed = new DatabaseSync(file);
    killed.exec('PRAGMA secure_delete = ON');
    killed.exec('UPDATE text_keys SET master_key_id = NULL, wrapped = NULL');
    expect(leftIn(await filesIn(folder), [key!.wrapped])).toHaveLength(1);
    await store.endErasure('session-1', [key!.key_id]);
    expect(leftIn(await filesIn(folder), [key!.wrapped])).toEqual([]);
    killed.close();
    await store.close();
  });
});

describe('the file', () => {
  test("is made with its folder for the owner's eyes only, and so are the files beside it", async () => {
    const store = await openSqliteKeyStore({ folder });
    await store.insert(newKeys(1));
    const names = (await readdir(folder)).toSorted();
    expect(names).toEqual(['keys.db', 'keys.db-shm', 'keys.db-wal']);
    for (const name of names) expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
    await store.close();
    expect(await readdir(folder)).toEqual(['keys.db']);
  });

  test('is opened by many at once that find none', async () => {
    const stores = await Promise.all(
      Array.from({ length: 8 }, () => openSqliteKeyStore({ folder })),
    );
    await Promise.all(stores.map((store) => store.insert(newKeys(20))));
    expect([...(await stores[0]!.count()).values()]).toEqual([160]);
    for (const store of stores) await store.close();
    expect(await readdir(folder)).toEqual(['keys.db']);
  });

  const refused = (problem: string) =>
    expect(openSqliteKeyStore({ folder })).rejects.toMatchObject({
      code: 'store_unavailable',
      retriable: false,
      message: expect.stringMatching(
        new RegExp(`^The key store ${file} cannot be opened: ${problem}`),
      ),
    });

  async function keptKeys(count: number): Promise<WrappedKey[]> {
    const store = await openSqliteKeyStore({ folder });
    const keys = newKeys(count);
    await store.insert(keys);
    await store.close();
    return keys;
  }

  test('that was emptied is refused, and not taken for a new one', async () => {
    await keptKeys(1);
    await truncate(file, 0);
    await refused('it is no key store, or lost what was in it');
  });

  test('that is no database, or another one, is refused', async () => {
    await keptKeys(1);
    const handle = await open(file, 'r+');
    await handle.write(Buffer.from('not a database at all'), 0, 21, 0);
    await handle.close();
    await refused('its file is not a SQLite database');
    await rm(file);
    openForWriting(join(folder, 'events.db')).close();
    await copyFile(join(folder, 'events.db'), file);
    await refused('it is no key store');
  });

  test.each([0, 9])('of another version is refused: %d', async (version) => {
    await keptKeys(1);
    const database = new DatabaseSync(file);
    database.exec(`PRAGMA user_version = ${version}`);
    database.close();
    await refused(`its version is ${version} where this Turnlog has 1`);
  });

  test('that was cut short says so, and no key is said never to have been', async () => {
    const keys = await keptKeys(500);
    await truncate(file, 8192);
    const answer = (async () => {
      const store = await openSqliteKeyStore({ folder });
      try {
        return await store.find(keys.map(({ key_id }) => key_id));
      } finally {
        await store.close();
      }
    })();
    await expect(answer).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('its file is damaged'),
    });
  });

  test('that was removed, or replaced, under a running service takes no key any more', async () => {
    const store = await openSqliteKeyStore({ folder });
    await store.insert(newKeys(1));
    await rename(file, `${file}.away`);
    const refusal = { code: 'store_unavailable', message: expect.stringContaining('keys.db is') };
    await expect(store.insert(newKeys(1))).rejects.toMatchObject(refusal);
    await copyFile(`${file}.away`, file);
    await expect(store.insert(newKeys(1))).rejects.toMatchObject(refusal);
    await store.close();
  });
});
