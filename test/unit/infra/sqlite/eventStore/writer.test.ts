import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { rm } from 'node:fs/promises';
import type { DatabaseSync } from 'node:sqlite';
import { eventLogFile, openForWriting } from '../../../../../infra/sqlite/eventStore/database.ts';
import { createWriter, type Append } from '../../../../../infra/sqlite/eventStore/writer.ts';
import { newEvent, newStream } from '../../../../contracts/eventStore/support.ts';
import { temporaryFolder } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

const append = (chars = 10): Append => ({
  stream: newStream(),
  expected: 'no_stream',
  events: [newEvent('x'.repeat(chars))],
});

const number = (database: DatabaseSync, sql: string): number =>
  Number(Object.values(database.prepare(sql).get() ?? {})[0]);

describe('the writer of the SQLite event store', () => {
  let folder: string;
  let database: DatabaseSync;

  beforeEach(async () => {
    folder = await temporaryFolder();
    database = openForWriting(eventLogFile(folder));
  });
  afterEach(async () => {
    database.close();
    await rm(folder, { recursive: true });
  });

  /** Leaves space for so many more pages, as a disk that is almost full. */
  const leaveSpace = (pages: number): void =>
    database.exec(`PRAGMA max_page_count = ${number(database, 'PRAGMA page_count') + pages}`);

  test('writes what fits when a neighbour in the same group is too large for the disk', () => {
    const commit = createWriter(database);
    leaveSpace(20);
    const outcomes = commit([append(), append(500_000), append()]);
    expect(outcomes).toMatchObject([
      { revision: 0, position: 1 },
      {
        code: 'store_unavailable',
        retriable: true,
        message: expect.stringContaining('disk is full'),
      },
      { revision: 0, position: 2 },
    ]);
    expect(number(database, 'SELECT count(*) FROM events')).toBe(2);
  });

  test('rolls back a group in which SQLite refuses a value, and writes the rest', () => {
    const commit = createWriter(database);
    const unstorable = {
      ...append(),
      events: [newEvent(), { ...newEvent(), data: null as unknown as string }],
    };
    expect(commit([append(), unstorable, append()])).toMatchObject([
      { position: 1 },
      { code: 'store_unavailable' },
      { position: 2 },
    ]);
    expect(number(database, 'SELECT count(*) FROM events')).toBe(2);
  });

  test('works again by itself once there is space, with the same ids', () => {
    const commit = createWriter(database);
    const large = append(500_000);
    leaveSpace(20);
    expect(commit([large])).toMatchObject([{ code: 'store_unavailable' }]);
    leaveSpace(1000);
    expect(commit([large, append()])).toMatchObject([{ revision: 0 }, { revision: 0 }]);
  });

  test('commits a group in one transaction, the refused ones among it included', () => {
    const commit = createWriter(database);
    const first = append();
    commit([first]);
    // Another connection's data_version counts the commits that it did not make itself.
    const observer = openForWriting(eventLogFile(folder));
    const before = number(observer, 'PRAGMA data_version');
    const outcomes = commit([
      append(),
      { ...first, stream: newStream() },
      append(),
      { ...append(), expected: 3 },
    ]);
    expect(outcomes).toMatchObject([
      { revision: 0 },
      { code: 'event_id_reused' },
      { revision: 0 },
      { code: 'stream_conflict' },
    ]);
    expect(number(observer, 'PRAGMA data_version')).toBe(before + 1);
    observer.close();
  });

  test('sees the appends before it in the same group', () => {
    const commit = createWriter(database);
    const first = append();
    const second: Append = { ...append(), stream: first.stream, expected: 0 };
    expect(commit([first, second, first, { ...append(), stream: first.stream }])).toMatchObject([
      { revision: 0, position: 1 },
      { revision: 1, position: 2 },
      { revision: 0, position: 1 },
      { code: 'stream_conflict' },
    ]);
  });

  test('fails the whole group at once when another process keeps the log locked', () => {
    database.exec('PRAGMA busy_timeout = 0');
    const commit = createWriter(database);
    const other = openForWriting(eventLogFile(folder));
    other.exec('BEGIN IMMEDIATE');
    expect(commit([append(), append()])).toMatchObject([
      { code: 'store_unavailable' },
      { code: 'store_unavailable' },
    ]);
    other.exec('ROLLBACK');
    other.close();
    expect(commit([append()])).toMatchObject([{ revision: 0 }]);
  });
});
