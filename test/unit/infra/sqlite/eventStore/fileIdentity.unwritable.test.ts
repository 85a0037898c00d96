import { expect, test } from '@jest/globals';
import { accessSync, statfsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { unwritableReason } from '../../../../../infra/sqlite/eventStore/fileIdentity.ts';

const file = fileURLToPath(import.meta.url);

const withFree = (bytes: number): string | undefined =>
  unwritableReason(file, {
    accessSync,
    statfsSync: () => ({ blocks: 1_000, bsize: 1, bavail: bytes, bfree: bytes }),
  });

test('a disk that has no room for a commit is full, and one with some room is not', () => {
  expect(withFree(0)).toBe('the disk is full');
  expect(withFree(4_096)).toBe('the disk is full');
  expect(withFree(1_048_576)).toBeUndefined();
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
