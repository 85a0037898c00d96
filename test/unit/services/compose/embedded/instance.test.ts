import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openInstance } from '../../../../../services/compose/embedded/instance.ts';
import { temporaryFolder } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
beforeEach(async () => void (folder = await temporaryFolder()));
afterEach(() => rm(folder, { recursive: true }));

const idOf = async (dataFolder: string): Promise<string> =>
  (await openInstance({ dataFolder, log: { folder: dataFolder } })).id;

test('the instance id stays the same, and only its owner may read it', async () => {
  const id = await idOf(folder);
  expect(await idOf(folder)).toBe(id);
  const file = join(folder, 'instance-id');
  expect(await readFile(file, 'utf8')).toBe(`${id}\n`);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test('a file that a power failure left empty is replaced by a complete one', async () => {
  const file = join(folder, 'instance-id');
  await writeFile(file, '');
  const { ino } = await stat(file);
  const id = await idOf(folder);
  expect(await readFile(file, 'utf8')).toBe(`${id}\n`);
  expect((await stat(file)).ino).not.toBe(ino);
});
