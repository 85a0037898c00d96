import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { firstRowid } from '../../../../../../infra/sqlite/readModels/buckets.ts';
import { canDeleteWords } from '../../../../../../infra/sqlite/readModels/erasure/deletedWords.ts';
import { VERSION } from '../../../../../../infra/sqlite/readModels/schema.ts';

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

/** Indexes this many turns, of 400 words each: about two pages. */
function index(turns: number): void {
  const insert = database.prepare(
    `INSERT INTO turn_words (rowid, session_id, turn, words, revision) VALUES (${firstRowid('?1')}, 'session_1', ?1, ?2, 1)`,
  );
  database.exec('BEGIN');
  for (let n = 0; n < turns; n += 1) insert.run((last += 1), anyWords(400));
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
const canDelete = (): boolean => canDeleteWords(structure());

test('words of a small index can be deleted, however many', () => {
  expect(canDelete()).toBe(true);
  index(50);
  remove(1, 50);
  expect(canDelete()).toBe(true);
});

test('words of a large segment can be deleted until three of four turns are, and again after a merge', () => {
  index(300);
  merge(ALL);
  remove(1, 225);
  expect(canDelete()).toBe(true);
  remove(226, 226);
  expect(canDelete()).toBe(false);
  // The turns of other segments do not count.
  index(300);
  expect(canDelete()).toBe(false);
  merge(ALL);
  expect(canDelete()).toBe(true);
});

test('turns that are deleted during a merge count with those that were before', () => {
  index(600);
  merge(ALL);
  remove(1, 450);
  merge(-16);
  expect(canDelete()).toBe(true);
  remove(451, 451);
  expect(canDelete()).toBe(false);
  remove(452, 590);
  merge(-ALL);
  expect(canDelete()).toBe(true);
});

test('words can be deleted whatever a record of another format says', () => {
  index(300);
  merge(ALL);
  remove(1, 300);
  expect(canDelete()).toBe(false);
  const record = Uint8Array.from(structure());
  record[7] = 2;
  expect(canDeleteWords(record)).toBe(true);
});
