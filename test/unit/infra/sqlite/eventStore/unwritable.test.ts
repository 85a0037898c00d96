import { expect, test } from '@jest/globals';
import { accessSync, statfsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  openFailureReason,
  unwritableReason,
} from '../../../../../infra/sqlite/eventStore/unwritable.ts';

const file = fileURLToPath(import.meta.url);

const free = (blocks: number) => ({ bavail: blocks, bfree: blocks });

const diskWith = (bytes: number): Parameters<typeof unwritableReason>[1] => ({
  accessSync,
  statfsSync: () => ({ blocks: 1_000, bsize: 1, ...free(bytes) }),
});
const withFree = (bytes: number): string | undefined => unwritableReason(file, diskWith(bytes));

test('a disk that has no room for a commit is full, and one with some room is not', () => {
  expect(withFree(0)).toBe('the disk is full');
  expect(withFree(4_096)).toBe('the disk is full');
  expect(withFree(1_048_576)).toBeUndefined();
});

test('the file system of a data folder is the one that is mounted there', () => {
  const withFullMount: Parameters<typeof unwritableReason>[1] = {
    accessSync,
    statfsSync: (at) => ({ blocks: 1_000, bsize: 4_096, ...free(at === file ? 0 : 1_000) }),
  };
  expect(unwritableReason(file, withFullMount)).toBe('the disk is full');
});

test('a file system that was made read-only is told from one that may be written', () => {
  const accessRefused = (): never => {
    throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' });
  };
  expect(unwritableReason(file, { statfsSync, accessSync: accessRefused })).toBe(
    'it may not be written',
  );
  expect(unwritableReason(file)).toBeUndefined();
});

test('an I/O error of SQLite on a full disk is of the full disk', () => {
  const SHARED_MEMORY_SIZE = 4_874;
  const error = Object.assign(new Error('disk I/O error'), { errcode: SHARED_MEMORY_SIZE });
  expect(openFailureReason(file, error, diskWith(0))).toBe('the disk is full');
  expect(openFailureReason(file, error, diskWith(1_048_576))).toBe('the disk reports an I/O error');
  const other = Object.assign(new Error('other'), { errcode: 1 });
  expect(openFailureReason(file, other, diskWith(0))).toBe('other');
});
