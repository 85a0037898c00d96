import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { firstRowid } from '../../../../../../infra/sqlite/readModels/buckets.ts';
import { canDeleteWords } from '../../../../../../infra/sqlite/readModels/erasure/deletedWords.ts';
import { VERSION } from '../../../../../../infra/sqlite/readModels/schema.ts';
import { createWordIndex } from '../../../../../../infra/sqlite/readModels/wordIndex.ts';

let database: DatabaseSync;
let last: number;
beforeEach(() => {
  database = new DatabaseSync(':memory:');
  database.exec(VERSION.ddl);
  last = 0;
});
afterEach(() => database.close());

const anyWords = (count: number): string =>
  Array.from({ length: count }, () => randomBytes(12).toString('hex')).join(' ');

/** Indexes this many turns, of so many words each that no other turn has. 400 words need three pages. */
function index(turns: number, words = 400): void {
  const insert = database.prepare(
    `INSERT INTO turn_words (rowid, session_id, turn, words, revision) VALUES (${firstRowid('?1')}, 'session_1', ?1, ?2, 1)`,
  );
  database.exec('BEGIN');
  for (let n = 0; n < turns; n += 1) insert.run((last += 1), anyWords(words));
  database.exec('COMMIT');
}
function remove(from: number, to: number): void {
  database.prepare('DELETE FROM turn_words WHERE turn BETWEEN ? AND ?').run(from, to);
}
/** Writes this many merged pages; a negative number merges all segments into one. */
const merge = (pages: number): void =>
  void database.prepare("INSERT INTO word_index(word_index, rank) VALUES ('merge', ?)").run(pages);
const ALL = -1_000_000;
const structure = (): Uint8Array =>
  database.prepare('SELECT block FROM word_index_data WHERE id = 10').get()!['block'] as Uint8Array;
const pages = (): number =>
  database.prepare('SELECT count(*) AS pages FROM word_index_data').get()!['pages'] as number;
const canDelete = (): boolean => createWordIndex(database).canDelete();

test('words of a small index can be deleted, however many', () => {
  expect(canDelete()).toBe(true);
  index(50);
  remove(1, 50);
  expect(canDelete()).toBe(true);
});

test('words of a large segment can be deleted until most are, and again after a merge', () => {
  index(300);
  merge(ALL);
  remove(1, 100);
  expect(canDelete()).toBe(true);
  remove(101, 200);
  expect(canDelete()).toBe(false);
  // The words of other segments do not count.
  index(300);
  expect(canDelete()).toBe(false);
  merge(ALL);
  expect(canDelete()).toBe(true);
});

test('the words of deleted turns count, and not the turns', () => {
  index(300);
  index(3_000, 1);
  merge(ALL);
  remove(301, 3_300);
  expect(canDelete()).toBe(true);
  remove(1, 200);
  expect(canDelete()).toBe(false);
});

test('turns that are deleted during a merge count with those that were before', () => {
  index(600);
  merge(ALL);
  remove(1, 200);
  merge(-16);
  expect(canDelete()).toBe(true);
  remove(201, 400);
  expect(canDelete()).toBe(false);
  // The merge leaves those that were deleted behind where it was.
  merge(-ALL);
  expect(canDelete()).toBe(false);
  merge(ALL);
  expect(canDelete()).toBe(true);
});

test('a merge that has removed all deleted words begins another count', () => {
  index(300);
  for (let from = 1; from <= 251; from += 50) {
    merge(ALL);
    expect(canDelete()).toBe(true);
    remove(from, from + 24);
    expect(canDelete()).toBe(true);
  }
});

test('a step reads a few hundred pages at most, also where deleted turns are much longer than others', () => {
  index(400);
  index(1_000, 2);
  merge(ALL);
  const words = createWordIndex(database);
  let deleted = 0;
  while (words.canDelete()) {
    remove(deleted + 1, deleted + 20);
    deleted += 20;
  }
  const before = pages();
  merge(-16);
  // It would read all pages and write none of what is deleted.
  expect(before - pages()).toBeLessThan(500);
});

test('words can be deleted whatever a record of another format says', () => {
  index(300);
  merge(ALL);
  remove(1, 300);
  expect(canDelete()).toBe(false);
  const record = Uint8Array.from(structure());
  record[7] = 2;
  const counts = { bytesOf: () => Infinity, reset: () => undefined };
  expect(canDeleteWords(record, counts)).toBe(true);
});
