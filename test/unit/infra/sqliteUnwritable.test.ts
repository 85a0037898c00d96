import { expect, test } from '@jest/globals';
import { accessSync, statfsSync, type StatsFs } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { unwritable } from '../../../infra/sqlite/eventStoreFiles.ts';

const file = fileURLToPath(import.meta.url);
const withFree = (bytes: number): string | undefined =>
  unwritable(file, {
    accessSync,
    statfsSync: (() => {
      const blocks = { bsize: 4096, bavail: bytes / 4096, bfree: bytes / 4096 };
      return { ...statfsSync('/'), ...blocks, blocks: 1000 } as StatsFs;
    }) as unknown as typeof statfsSync,
  });

test('a disk that has no room for a commit is full, and one with some room is not', () => {
  expect(withFree(0)).toBe('the disk is full');
  expect(withFree(4096)).toBe('the disk is full');
  expect(withFree(1024 * 1024)).toBeUndefined();
});

test('a file system that was made read-only is told from one that may be written', () => {
  const system = {
    statfsSync,
    accessSync: () => {
      throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' });
    },
  };
  expect(unwritable(file, system)).toBe('it may not be written');
  expect(unwritable(file)).toBeUndefined();
});
