import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { copyFileSync, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { copyFile, cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { openForWriting } from '../../../infra/sqlite/eventStore/database.ts';
import { identifyFiles } from '../../../infra/sqlite/eventStore/fileIdentity.ts';
import {
  createWriter,
  commitIfUnchanged,
  type Append,
} from '../../../infra/sqlite/eventStore/writer.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { acquireServerLock } from '../../../infra/sqlite/serverLock.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import {
  follow,
  newEvent,
  newEvents,
  newStream,
  readAll,
} from '../../contracts/eventStore/support.ts';
import { eventually } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let file: string;
let aside: string;
let store: EventStore;
let lock: { release(): void };

beforeEach(async () => {
  folder = join(await temporaryFolder(), 'data');
  file = join(folder, 'events.db');
  aside = join(dirname(folder), 'aside');
  await mkdir(folder);
  lock = acquireServerLock(folder);
  store = await openSqliteEventStore({ folder });
  await append();
});
afterEach(async () => {
  await store.close();
  lock.release();
  await rm(dirname(folder), { recursive: true, force: true });
});

const append = () => store.append(newStream(), 'no_stream', newEvents(1));

/** What is in the -wal comes into events.db. */
function checkpoint(): void {
  const database = openForWriting(file);
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  database.close();
}

/** How many events somebody finds who opens the log at its path with nothing else running. */
async function eventsAtPath(): Promise<number> {
  if (!existsSync(file)) return 0;
  const copy = join(dirname(folder), 'copy.db');
  await copyFile(file, copy);
  if (existsSync(`${file}-wal`)) await copyFile(`${file}-wal`, `${copy}-wal`);
  const database = new DatabaseSync(copy);
  try {
    return Number(database.prepare('SELECT count(*) AS events FROM events').get()?.['events']);
  } catch {
    // Even the table stands in the -wal at first.
    return 0;
  } finally {
    database.close();
  }
}

const CHANGES: Record<string, [change: () => Promise<unknown>, says: string]> = {
  'the folder is removed': [() => rm(folder, { recursive: true }), 'events.db is gone'],
  'the folder is moved away': [() => rename(folder, aside), 'events.db is gone'],
  'the folder is replaced by a copy': [
    async () => {
      await cp(folder, aside, { recursive: true });
      await rename(folder, `${aside}-before`);
      await rename(aside, folder);
    },
    'events.db is another',
  ],
  'a file takes the place of the folder': [
    async () => {
      await rename(folder, aside);
      await copyFile(join(aside, 'events.db'), folder);
    },
    'events.db is gone',
  ],
  'events.db is replaced by a copy': [
    async () => {
      await copyFile(file, aside);
      await rename(aside, file);
    },
    'events.db is another',
  ],
  'events.db is renamed': [() => rename(file, aside), 'events.db is gone'],
  'its -wal is deleted': [() => rm(`${file}-wal`), 'events.db-wal is gone'],
  'its -shm is deleted': [() => rm(`${file}-shm`), 'events.db-shm is gone'],
  'the lock of its server is deleted': [
    () => rm(join(folder, 'server.lock')),
    'server.lock is gone',
  ],
};

describe.each(Object.entries(CHANGES))('when %s', (_, [change, says]) => {
  test('nothing is acknowledged any more, and it is told at once without an append', async () => {
    expect(store.trouble()).toBeUndefined();
    await change();
    expect(store.trouble()).toContain(says);
    const stream = newStream();
    const expected = {
      code: 'log_changed',
      retriable: true,
      retryAfterSeconds: expect.any(Number),
      message: expect.stringContaining(says),
    };
    await expect(store.append(stream, 'no_stream', newEvents(1))).rejects.toMatchObject(expected);
    expect(await readAll(store, stream)).toEqual([]);
  });

  test('a subscription does not go on', async () => {
    const subscription = follow(store, undefined);
    await subscription.next();
    const refused = expect(subscription.next()).rejects.toMatchObject({ code: 'log_changed' });
    await change();
    await refused;
  });
});

test('a backup that is written over events.db, which the system knows as the same, is noticed', async () => {
  checkpoint();
  await copyFile(file, aside);
  for (let more = 0; more < 20; more += 1) await append();
  checkpoint();
  await append();
  expect(store.trouble()).toBeUndefined();
  const { ino } = statSync(file);
  await writeFile(file, await readFile(aside));
  expect(statSync(file).ino).toBe(ino);
  const message = expect.stringContaining('events.db was written over with a shorter one');
  await expect(append()).rejects.toMatchObject({ code: 'log_changed', message });
  expect(store.trouble()).toEqual(message);
});

test('a backup that SQLite itself puts into events.db is noticed with the next write', async () => {
  const before = new DatabaseSync(file);
  await backup(before, aside);
  before.close();
  await append();
  const restored = new DatabaseSync(aside);
  await backup(restored, file);
  restored.close();
  const message = expect.stringContaining('its newest event is gone');
  await expect(append()).rejects.toMatchObject({ code: 'log_changed', message });
  expect(await eventsAtPath()).toBe(1);
});

test('a log that is back in its place is written to again', async () => {
  await rename(folder, aside);
  await expect(append()).rejects.toMatchObject({ code: 'log_changed' });
  await rename(aside, folder);
  expect(store.trouble()).toBeUndefined();
  await append();
  expect(await eventsAtPath()).toBe(2);
});

test('what was acknowledged before the -wal was deleted is brought into events.db, and outlasts a kill', async () => {
  for (let more = 0; more < 20; more += 1) await append();
  await rm(`${file}-wal`);
  await eventually(eventsAtPath, (events) => events === 21);
});

test('a -wal that somebody else has put there is not written over', async () => {
  for (let more = 0; more < 20; more += 1) await append();
  copyFileSync(`${file}-wal`, aside);
  renameSync(aside, `${file}-wal`);
  const { mtimeMs } = statSync(file);
  await sleep(600);
  expect(statSync(file).mtimeMs).toBe(mtimeMs);
});

test('a commit during which the log is moved away is not acknowledged', async () => {
  const database = openForWriting(file);
  const files = identifyFiles(file);
  const another = (): Append => ({
    stream: newStream(),
    expected: 'no_stream',
    events: [newEvent()],
  });
  const commit = createWriter(database);
  const moved = commitIfUnchanged(files, (appends) => {
    const outcomes = commit(appends);
    renameSync(folder, aside);
    return outcomes;
  });
  expect(moved([another(), another()])).toMatchObject([
    { code: 'log_changed' },
    { code: 'log_changed' },
  ]);
  renameSync(aside, folder);
  const never = commitIfUnchanged(files, () => {
    throw new Error('was asked to write');
  });
  rmSync(`${file}-wal`);
  expect(never([another()])).toMatchObject([{ code: 'log_changed' }]);
  database.close();
});
