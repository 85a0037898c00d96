import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteRebuildStore } from '../../../infra/sqlite/readModels/rebuildStore.ts';
import { openSqliteRowCopy } from '../../../infra/sqlite/readModels/verification.ts';
import { generationFile } from '../../../infra/sqlite/readModels/generations.ts';
import {
  sessionErased,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../support/builders/events.ts';
import { recordHistory, reached } from '../../support/builders/history.ts';
import { filesHolding, newMarker } from '../../support/stores/erasure/holding.ts';
import { eventually } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const STREAM = { stream: 'session-session_1' };

let folder: string;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(async () => {
  jest.useRealTimers();
  jest.restoreAllMocks();
  await rm(folder, { recursive: true });
});

function history(marker: string) {
  const { record } = recordHistory();
  const talked = [
    sessionStarted(),
    turnStarted(1, { input: marker }),
    turnCompleted(1, { output: `${marker}${'x'.repeat(20_000)}${marker}` }),
  ].map((event) => record(STREAM, event));
  return { talked, erased: record(STREAM, sessionErased()) };
}

test('the write-ahead file is emptied as soon as a reader of an older moment has gone', async () => {
  const marker = newMarker();
  const { talked, erased } = history(marker);
  const store = await openSqliteProjectionStore({ folder });
  await store.apply(talked, reached(talked.at(-1)!.position));
  const reader = new DatabaseSync(generationFile(folder, 1), { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM turns').get();
  await store.apply([erased], reached(erased.position));
  expect(filesHolding(folder, marker)).not.toEqual([]);
  reader.exec('COMMIT');
  const held = await eventually(
    async () => filesHolding(folder, marker),
    (files) => files.length === 0,
  );
  expect(held).toEqual([]);
  reader.close();
  await store.close();
});

/** Notes how long each cleanup may wait for readers, in milliseconds. */
function watchCleanups(): number[] {
  const waits: number[] = [];
  const { prepare } = DatabaseSync.prototype;
  jest.spyOn(DatabaseSync.prototype, 'prepare').mockImplementation(function (
    this: DatabaseSync,
    sql,
  ) {
    const timeout = prepare.call(this, 'PRAGMA busy_timeout').get()!['timeout'];
    if (sql.includes('wal_checkpoint(TRUNCATE)')) waits.push(Number(timeout));
    return prepare.call(this, sql);
  });
  return waits;
}

test('many erasures in a row share a cleanup a moment later', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
  const store = await openSqliteProjectionStore({ folder });
  const { record } = recordHistory();
  const waits = watchCleanups();
  for (let nth = 1; nth <= 25; nth += 1) {
    const stream = { stream: `session-session_${nth}` };
    const events = [record(stream, sessionStarted()), record(stream, sessionErased())];
    await store.apply(events, reached(events[1]!.position));
  }
  const atOnce = Array.from({ length: 20 }, () => 10);
  expect(waits).toEqual(atOnce);
  jest.advanceTimersByTime(199);
  expect(waits).toEqual(atOnce);
  jest.advanceTimersByTime(60_000);
  expect(waits).toEqual([...atOnce, 10]);
  await store.close();
});

test('a cleanup hardly waits for readers until it is late, and then shortly', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
  const { talked, erased } = history(newMarker());
  const store = await openSqliteProjectionStore({ folder });
  await store.apply(talked, reached(talked.at(-1)!.position));
  const reader = new DatabaseSync(generationFile(folder, 1), { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM turns').get();
  const waits = watchCleanups();
  await store.apply([erased], reached(erased.position));
  expect(waits).toEqual([10]);
  jest.advanceTimersByTime(10_000);
  expect([waits.length > 5, Math.max(...waits)]).toEqual([true, 10]);
  jest.advanceTimersByTime(2_000);
  expect(waits.at(-1)).toBe(250);
  reader.close();
  jest.advanceTimersByTime(2_000);
  const cleanups = waits.length;
  jest.advanceTimersByTime(60_000);
  expect(waits).toHaveLength(cleanups);
  await store.close();
});

test('what a crash left between the erasure and the emptied file is emptied at the next opening', async () => {
  const marker = newMarker();
  const { talked, erased } = history(marker);
  const store = await openSqliteProjectionStore({ folder });
  await store.apply([...talked, erased], reached(erased.position));
  // As a process leaves it that dies: another connection keeps the write-ahead file there.
  const other = new DatabaseSync(generationFile(folder, 1));
  other.exec(
    `CREATE TABLE left (text); INSERT INTO left VALUES ('${marker}'); PRAGMA secure_delete = ON`,
  );
  other.exec('DELETE FROM left');
  await store.close();
  expect(filesHolding(folder, marker)).not.toEqual([]);
  const again = await openSqliteProjectionStore({ folder });
  expect(filesHolding(folder, marker)).toEqual([]);
  other.close();
  await again.close();
});

test('an interrupted rebuild that had not come to the erasure is deleted, one that is at work is not', async () => {
  const marker = newMarker();
  const { talked, erased } = history(marker);
  const store = await openSqliteProjectionStore({ folder });
  await store.apply(talked, reached(talked.at(-1)!.position));
  const rebuild = await openSqliteRebuildStore({ folder });
  await rebuild.apply(talked, reached(talked.at(-1)!.position));
  await store.apply([erased], reached(erased.position));
  const building = (): string[] =>
    readdirSync(join(folder, 'read-models')).filter((name) => name.endsWith('.building.db'));
  expect(building()).toHaveLength(1);
  await rebuild.close();
  await store.close();
  await (await openSqliteProjectionStore({ folder })).close();
  expect([building(), filesHolding(folder, marker)]).toEqual([[], []]);
});

test.each([
  ['rebuild', openSqliteRebuildStore],
  ['verification', openSqliteRowCopy],
])(
  'a %s that ends before it comes to the erasure leaves no erased text, also without a restart',
  async (_what, open) => {
    const marker = newMarker();
    const { talked, erased } = history(marker);
    const store = await openSqliteProjectionStore({ folder });
    await store.apply(talked, reached(talked.at(-1)!.position));
    const copy = await open({ folder });
    await copy.apply(talked, reached(talked.at(-1)!.position));
    await store.apply([erased], reached(erased.position));
    await copy.close();
    expect(filesHolding(folder, marker)).not.toEqual([]);
    await eventually(
      async () => filesHolding(folder, marker),
      (files) => files.length === 0,
    );
    await store.close();
  },
);
