import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { mkdir, readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { eventLogFile, openForWriting } from '../../../infra/sqlite/eventStore/database.ts';
import { startWriterThread } from '../../../infra/sqlite/eventStore/writerThread.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  newEvent,
  newEvents,
  newStream,
  readAll,
  refusedWith,
} from '../../contracts/eventStore/support.ts';
import { sqliteEventStoreFixture } from '../../support/stores/sqlite/sqliteEventStore.ts';

/**
 * How many transactions a write-ahead log holds: frames that name a database size end one
 * (https://sqlite.org/fileformat.html#walformat).
 */
function commitsIn(wal: Buffer): number {
  const frameBytes = 24 + wal.readUInt32BE(8);
  const salt = wal.subarray(16, 24);
  let commits = 0;
  for (let at = 32; at + frameBytes <= wal.length; at += frameBytes) {
    if (wal.subarray(at + 8, at + 16).equals(salt) && wal.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}

/** More than the pause after the first thread that could not open the log. */
const RESTART_PAUSE_MS = 150;

const account_id = 'acct_1';

describe('writing to the SQLite event store', () => {
  let fixture: Awaited<ReturnType<typeof sqliteEventStoreFixture>>;
  beforeEach(async () => {
    fixture = await sqliteEventStoreFixture();
  });
  afterEach(() => fixture.dispose());

  const commits = async () => commitsIn(await readFile(join(fixture.folder, 'events.db-wal')));
  const append = () => fixture.store().append(newStream(), 'no_stream', newEvents(1));

  test('lets appends that are made at the same time share a commit', async () => {
    await append();
    const before = await commits();
    for (let alone = 0; alone < 5; alone += 1) await append();
    expect((await commits()) - before).toBe(5);
    await Promise.all(Array.from({ length: 200 }, append));
    expect((await commits()) - before - 5).toBeLessThanOrEqual(3);
  });

  test('commits together what came while the log was locked', async () => {
    await append();
    const before = await commits();
    const other = openForWriting(eventLogFile(fixture.folder));
    other.exec('BEGIN IMMEDIATE');
    const appends: Promise<unknown>[] = [];
    for (let turn = 0; turn < 20; turn += 1) {
      appends.push(append());
      await setTimeout(1);
    }
    other.exec('ROLLBACK');
    other.close();
    await Promise.all(appends);
    expect((await commits()) - before).toBeLessThanOrEqual(3);
  });

  test('does not hold up the thread that appends while the log is locked', async () => {
    const store = fixture.store();
    const stream = newStream();
    await store.append(stream, 'no_stream', newEvents(1));
    const other = openForWriting(eventLogFile(fixture.folder));
    other.exec('BEGIN IMMEDIATE');
    let answered = false;
    const waiting = store.append(stream, 0, newEvents(1)).then(() => (answered = true));
    await setTimeout(20);
    expect(await readAll(store, stream)).toHaveLength(1);
    expect(answered).toBe(false);
    other.exec('ROLLBACK');
    other.close();
    await waiting;
    expect(await readAll(store, stream)).toHaveLength(2);
  });

  test('refuses more than the share of an account while the disk is behind, and takes it later', async () => {
    const store = fixture.store();
    const other = openForWriting(eventLogFile(fixture.folder));
    other.exec('BEGIN IMMEDIATE');
    const data = JSON.stringify('x'.repeat(1_000_000));
    const appendLarge = () => store.append(newStream(), 'no_stream', [{ ...newEvent(), data }]);
    const appends = Array.from({ length: 40 }, appendLarge);
    const refused = await Promise.race(appends).catch((error: unknown) => error);
    expect(isTurnlogError(refused, 'store_unavailable')).toBe(true);
    const metadata = JSON.stringify({ account_id: 'acct_2' });
    const ofAnother = store.append(newStream(), 'no_stream', [{ ...newEvent(), data, metadata }]);
    other.exec('ROLLBACK');
    other.close();
    const statuses = (await Promise.allSettled(appends)).map((outcome) => outcome.status);
    expect(statuses.filter((status) => status === 'fulfilled')).toHaveLength(33);
    await expect(ofAnother).resolves.toMatchObject({ revision: 0 });
    await expect(appendLarge()).resolves.toMatchObject({ revision: 0 });
  });

  test('writes an append in the commit after next at the latest, whatever other accounts have queued', async () => {
    const bytes = LIMITS.store.writingBytes / 4;
    const writer = startWriterThread(eventLogFile(fixture.folder), []);
    const request = () => ({
      stream: newStream(),
      expected: 'no_stream' as const,
      events: newEvents(1),
    });
    const queued = Array.from({ length: 40 }, () =>
      writer.append(request(), { account_id: 'busy', bytes }),
    );
    await setImmediate();
    for (let before = 0, appended = 0; appended < 3; appended += 1) {
      const { position } = await writer.append(request(), { account_id: 'other', bytes: 100 });
      // Four may be in the thread, and three precede it in the next message.
      expect(position - before).toBeLessThanOrEqual(8);
      before = position;
    }
    await writer.close();
    const positions = (await Promise.all(queued)).map(({ position }) => position);
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
  });

  test('hands the thread that writes only so much at a time, in order, and what waits before the end', async () => {
    const size = LIMITS.store.writingBytes / 4;
    const writer = startWriterThread(eventLogFile(fixture.folder), []);
    const stream = newStream();
    const large = () => ({ ...newEvent(), data: JSON.stringify('x'.repeat(size - 1_000)) });
    let written = 0;
    const appends = Array.from({ length: 12 }, (_, index) =>
      writer.append(
        { stream, expected: index === 0 ? 'no_stream' : index - 1, events: [large()] },
        { account_id, bytes: size },
      ),
    );
    for (const appended of appends) void appended.then(() => (written += 1));
    await appends[3];
    // What else came with the same answer of the thread is known within the same turn.
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    expect(written).toBe(4);
    const further = writer.append(
      { stream, expected: 11, events: [large()] },
      { account_id, bytes: 5 * size },
    );
    await writer.close();
    expect((await Promise.all([...appends, further])).map(({ revision }) => revision)).toEqual(
      Array.from({ length: 13 }, (_, index) => index),
    );
  });

  test('fails what waits for a writing thread that has died with it', async () => {
    const folder = join(fixture.folder, 'not-there-either');
    const writer = startWriterThread(eventLogFile(folder), []);
    const { writingBytes } = LIMITS.store;
    const attempts = Array.from({ length: 3 }, () =>
      writer.append(
        { stream: newStream(), expected: 'no_stream', events: newEvents(1) },
        { account_id, bytes: writingBytes },
      ),
    );
    await Promise.all(attempts.map((attempt) => refusedWith('store_unavailable', attempt)));
    await mkdir(folder);
    await setTimeout(RESTART_PAUSE_MS);
    const later = { stream: newStream(), expected: 'no_stream' as const, events: newEvents(1) };
    expect(await writer.append(later, { account_id, bytes: writingBytes })).toEqual({
      revision: 0,
      position: 1,
    });
    await writer.close();
  });

  test('fails the appends of a writing thread that has died, and starts another one after a pause', async () => {
    const folder = join(fixture.folder, 'not-there-yet');
    const writer = startWriterThread(eventLogFile(folder), []);
    const attempt = () =>
      writer.append(
        { stream: newStream(), expected: 'no_stream', events: newEvents(1) },
        { account_id, bytes: 100 },
      );
    await Promise.all([
      refusedWith('store_unavailable', attempt()),
      refusedWith('store_unavailable', attempt()),
    ]);
    await mkdir(folder);
    await refusedWith('store_unavailable', attempt());
    await setTimeout(RESTART_PAUSE_MS);
    expect(await attempt()).toEqual({ revision: 0, position: 1 });
    await writer.close();
  });

  test('keeps the write-ahead log small while it writes', async () => {
    for (let count = 0; count < 64; count += 1)
      await fixture
        .store()
        .append(newStream(), 'no_stream', [newEvent({ text: 'x'.repeat(250_000) })]);
    const { size } = await stat(join(fixture.folder, 'events.db-wal'));
    expect(size).toBeLessThan(8_000_000);
  });

  test('starts another writing thread at once after one that had answered, and pauses anew after a failure', async () => {
    const folder = join(fixture.folder, 'not-there-yet');
    const post = jest.spyOn(Worker.prototype, 'postMessage');
    const killThread = () => (post.mock.contexts.at(-1) as Worker).terminate();
    const writer = startWriterThread(eventLogFile(folder), []);
    const attempt = () =>
      writer.append(
        { stream: newStream(), expected: 'no_stream', events: newEvents(1) },
        { account_id, bytes: 100 },
      );
    await refusedWith('store_unavailable', attempt());
    await mkdir(folder);
    await setTimeout(RESTART_PAUSE_MS);
    await attempt();
    await killThread();
    expect(await attempt()).toMatchObject({ position: 2 });
    await killThread();
    await rename(folder, `${folder}-away`);
    await refusedWith('store_unavailable', attempt());
    await rename(`${folder}-away`, folder);
    await setTimeout(RESTART_PAUSE_MS);
    expect(await attempt()).toMatchObject({ position: 3 });
    await writer.close();
    jest.restoreAllMocks();
  });
});
