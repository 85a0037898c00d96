import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { checkpointAfterCommits } from '../../../../infra/sqlite/walCheckpoint.ts';

let folder: string;
let database: DatabaseSync;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'turnlog-checkpoint-'));
  database = new DatabaseSync(join(folder, 'log.db'));
  database.exec('PRAGMA journal_mode = WAL; CREATE TABLE texts (text TEXT)');
});
afterEach(() => {
  if (database.isOpen) database.close();
  rmSync(folder, { recursive: true });
});

/** The pages of the write-ahead log that are not in the file yet. */
function pending(): number {
  const { log, checkpointed } = database.prepare('PRAGMA wal_checkpoint(NOOP)').get()!;
  return Number(log) - Number(checkpointed);
}
const commitPages = (pages: number): void =>
  void database.prepare('INSERT INTO texts VALUES (?)').run('x'.repeat(4_096 * pages));

test('checkpoints after a commit, from the size on, and never within one', () => {
  const checkpoint = checkpointAfterCommits(database, 1_000);
  commitPages(900);
  checkpoint();
  expect(pending()).toBeGreaterThan(900);
  commitPages(1_100);
  expect(pending()).toBeGreaterThan(2_000);
  checkpoint();
  expect(pending()).toBe(0);
});

test('a write-ahead log that has grown is checkpointed after each commit, so that it begins anew', () => {
  const checkpoint = checkpointAfterCommits(database, 100);
  commitPages(450);
  const reader = new DatabaseSync(join(folder, 'log.db'));
  reader.exec('BEGIN; SELECT * FROM texts');
  checkpoint();
  commitPages(10);
  reader.close();
  checkpoint();
  expect(pending()).toBe(0);
  commitPages(1);
  expect(Number(database.prepare('PRAGMA wal_checkpoint(NOOP)').get()!['log'])).toBeLessThan(10);
});

test('a checkpoint that can not write leaves the commit as it is, and is made by a later call', () => {
  const checkpoint = checkpointAfterCommits(database, 10);
  const reader = new DatabaseSync(join(folder, 'log.db'));
  reader.exec('BEGIN; SELECT * FROM texts');
  commitPages(20);
  checkpoint();
  expect(pending()).toBeGreaterThan(10);
  reader.close();
  checkpoint();
  expect(pending()).toBe(0);
});
