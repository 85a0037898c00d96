import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { firstRowid } from '../../../../../../infra/sqlite/readModels/buckets.ts';
import {
  canDeleteWords,
  LIVE_BYTES_BEFORE,
  ORIGIN_BITS,
} from '../../../../../../infra/sqlite/readModels/erasure/deletedWords.ts';
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

/** Indexes this many turns, by default of 400 words each that no other turn has, which need three pages. */
function index(turns: number, wordsOfTurn = () => anyWords(400)): void {
  const insert = database.prepare(
    `INSERT INTO turn_words (rowid, session_id, turn, words, revision) VALUES (${firstRowid('?1')}, 'session_1', ?1, ?2, 1)`,
  );
  database.exec('BEGIN');
  for (let n = 0; n < turns; n += 1) insert.run((last += 1), wordsOfTurn());
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
  index(3_000, () => anyWords(1));
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
  index(1_000, () => anyWords(2));
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

/** Deletes all turns, and returns how many merges of the whole index that took. */
function removeAll(): number {
  let merges = 0;
  for (let deleted = 0; deleted < last; deleted += 20) {
    for (; !canDelete(); merges += 1) merge(ALL);
    remove(deleted + 1, deleted + 20);
  }
  return merges;
}

test('turns that have the same words are deleted in few merges, each of half of the index', () => {
  const words = anyWords(1_500);
  index(400, () => words);
  merge(ALL);
  expect(pages()).toBeGreaterThan(500);
  expect(removeAll()).toBeLessThan(3);
});

test('a step reads a few hundred pages at most where deleted turns have other words, and the rest the same', () => {
  const words = anyWords(1_500);
  index(100, () => words);
  index(200, () => anyWords(1_000));
  merge(ALL);
  const before = pages();
  for (let turn = 101; canDelete(); turn += 20) remove(turn, turn + 19);
  merge(-16);
  expect(before - pages()).toBeLessThan(500);
});

test('the live words before an origin are counted, however many origins there are', () => {
  const add = database.prepare(
    'INSERT INTO live_words VALUES (?1, ?2 >> ?1, 1) ON CONFLICT DO UPDATE SET bytes = bytes + 1',
  );
  const before = database.prepare(LIVE_BYTES_BEFORE);
  for (let origin = 0; origin < 200_000; origin += 100)
    for (const bits of ORIGIN_BITS) add.run(bits, origin);
  for (const origin of [0, 1, 255, 256, 257, 65_536, 65_601, 131_072, 199_901, 1_000_000])
    expect(before.get({ origin })).toEqual({ bytes: Math.min(Math.ceil(origin / 100), 2_000) });
});

test('words can be deleted whatever a record of another format says', () => {
  index(300);
  merge(ALL);
  remove(1, 300);
  expect(canDelete()).toBe(false);
  const record = Uint8Array.from(structure());
  record[7] = 2;
  const counts = { bytesOf: () => 1, liveBytesOf: () => 0, reset: () => undefined };
  expect(canDeleteWords(record, counts)).toBe(true);
});
