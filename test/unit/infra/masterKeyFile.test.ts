import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { makeMasterKeyFile, readMasterKeys } from '../../../infra/files/masterKeyFile.ts';
import { newMasterKey } from '../../../shared/eventlog/masterKeys.ts';
import { temporaryFolder } from '../../support/sqlite/sqliteEventStore.ts';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  file = join(folder, 'master.key');
});
afterEach(() => rm(folder, { recursive: true }));

const refusal = (problem: string) =>
  expect.objectContaining({
    code: 'configuration_invalid',
    message: expect.stringContaining(problem),
  });

test('one is made for its owner alone, with one key, and nothing beside it', async () => {
  makeMasterKeyFile(file);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).toEqual(['master.key']);
  expect(readMasterKeys(file).ids).toHaveLength(1);
});

test('one that is there is never replaced', async () => {
  makeMasterKeyFile(file);
  const before = await readFile(file, 'utf8');
  makeMasterKeyFile(file);
  expect(await readFile(file, 'utf8')).toBe(before);
  expect(await readdir(folder)).toEqual(['master.key']);
});

test('one in a folder that is not there is refused', () => {
  expect(() => makeMasterKeyFile(join(folder, 'none', 'master.key'))).toThrow(
    refusal("can't be made"),
  );
});

test.each([0o604, 0o602, 0o666])(
  'one that everybody on the machine has a right to (%#) is refused',
  async (mode) => {
    await writeFile(file, newMasterKey());
    await chmod(file, mode);
    expect(() => readMasterKeys(file)).toThrow(refusal('chmod o-rwx'));
  },
);

test('one that its group may read is taken', async () => {
  await writeFile(file, newMasterKey());
  await chmod(file, 0o440);
  expect(readMasterKeys(file).ids).toHaveLength(1);
});

test('one that is not there, is a folder or is far too large is refused, and says how to make one', async () => {
  expect(() => readMasterKeys(file)).toThrow(refusal('text-keys new-master'));
  await mkdir(file, { mode: 0o700 });
  expect(() => readMasterKeys(file)).toThrow(refusal("can't be used"));
  const large = join(folder, 'large.key');
  await writeFile(large, `${'#'.repeat(70_000)}\n${newMasterKey()}`, { mode: 0o600 });
  expect(() => readMasterKeys(large)).toThrow(refusal('larger than'));
});
