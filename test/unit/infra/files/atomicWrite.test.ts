import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { writeFileAtomically } from '../../../../infra/files/atomicWrite.ts';
import { temporaryFolder } from '../../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => rm(folder, { recursive: true }));

/** Bytes that a disk takes a part of. */
function* bytesUntilFull(): Generator<string> {
  yield 'a part';
  throw new Error('no space left on device');
}

test('leaves the file as it was, and nothing else, when the disk is full', async () => {
  const path = join(folder, 'file');
  await writeFile(path, 'before');
  const bytes = bytesUntilFull() as Iterable<string> as never;
  await expect(writeFileAtomically({ path, bytes })).rejects.toThrow('no space left');
  expect(await readFile(path, 'utf8')).toBe('before');
  expect(await readdir(folder)).toEqual(['file']);
});

test('leaves nothing when the file can not be put in its place', async () => {
  const path = join(folder, 'occupied');
  await mkdir(path);
  await expect(writeFileAtomically({ path, bytes: 'x' })).rejects.toThrow();
  expect(await readdir(folder)).toEqual(['occupied']);
});
