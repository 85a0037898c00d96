import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { openForWriting } from '../../../infra/sqlite/eventStore/database.ts';
import { openSqliteEventLog } from '../../../infra/sqlite/eventStore/log.ts';
import { acquireServerLock } from '../../../infra/sqlite/serverLock.ts';
import { newEvents, newStream } from '../../contracts/eventStore/support.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const mode = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

describe('the file of the SQLite event store', () => {
  let folder: string;
  let file: string;

  beforeEach(async () => {
    folder = join(await temporaryFolder(), 'data');
    file = join(folder, 'events.db');
  });
  afterEach(() => rm(join(folder, '..'), { recursive: true }));

  async function writeSome(count: number): Promise<void> {
    const store = await openSqliteEventStore({ folder });
    for (let written = 0; written < count; written += 1)
      await store.append(newStream(), 'no_stream', newEvents(5));
    await store.close();
  }

  test("is created with its folder for the owner's eyes only, and so are the files beside it", async () => {
    const store = await openSqliteEventStore({ folder });
    await store.append(newStream(), 'no_stream', newEvents(1));
    const lock = acquireServerLock(folder);
    const names = await readdir(folder);
    expect(names.toSorted()).toEqual([
      'events.db',
      'events.db-shm',
      'events.db-wal',
      'server.lock',
    ]);
    expect(await mode(folder)).toBe(0o700);
    expect(await Promise.all(names.map((name) => mode(join(folder, name))))).toEqual(
      names.map(() => 0o600),
    );
    lock.release();
    await store.close();
  });

  test('is complete by itself after the store was closed', async () => {
    await writeSome(3);
    expect(await readdir(folder)).toEqual(['events.db']);
  });

  test('is written through to the disk by every commit', async () => {
    await writeSome(1);
    const database = openForWriting(file);
    expect(database.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 2 });
    expect(database.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
    database.close();
  });

  test('is refused when a newer version of Turnlog wrote it, and stays as it is', async () => {
    await writeSome(1);
    const newer = new DatabaseSync(file);
    newer.exec('PRAGMA user_version = 99');
    newer.close();
    const refusal = {
      code: 'store_unavailable',
      retriable: false,
      message: expect.stringMatching(/events\.db.*newer version of Turnlog \(schema 99/),
    };
    await expect(openSqliteEventStore({ folder })).rejects.toMatchObject(refusal);
    expect(() => openSqliteEventLog({ folder })).toThrow(
      expect.objectContaining({
        code: 'store_unavailable',
        message: expect.stringContaining('its schema is 99'),
      }),
    );
    const after = new DatabaseSync(file);
    expect(after.prepare('PRAGMA user_version').get()).toEqual({ user_version: 99 });
    after.close();
  });

  test('is refused with its name when it is no database', async () => {
    await writeSome(1);
    await writeFile(file, 'not a database, however long this text may be. '.repeat(200));
    const refusal = {
      code: 'store_unavailable',
      retriable: false,
      message: expect.stringMatching(
        /events\.db cannot be opened: its file is not a SQLite database/,
      ),
    };
    await expect(openSqliteEventStore({ folder })).rejects.toMatchObject(refusal);
  });

  test('fails reads and appends with store_unavailable where it is damaged, and the process lives on', async () => {
    await writeSome(200);
    const handle = await open(file, 'r+');
    const { size } = await handle.stat();
    for (let page = 2; page * 4096 < size; page += 1)
      await handle.write(Buffer.alloc(4096, 0xee), 0, 4096, page * 4096);
    await handle.close();
    const store = await openSqliteEventStore({ folder });
    const damaged = { code: 'store_unavailable', message: expect.stringContaining('damaged') };
    await expect(store.append(newStream(), 'no_stream', newEvents(1))).rejects.toMatchObject(
      damaged,
    );
    const subscription = store.subscribe({
      batchSize: 10_000,
      signal: new AbortController().signal,
    });
    await expect(subscription[Symbol.asyncIterator]().next()).rejects.toMatchObject(damaged);
    await store.close();
  });

  test('is not made by the reading half', async () => {
    expect(() => openSqliteEventLog({ folder })).toThrow(
      expect.objectContaining({
        code: 'store_unavailable',
        message: expect.stringContaining(folder),
      }),
    );
  });
});
