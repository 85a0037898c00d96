import { execFileSync } from 'node:child_process';
import { chmod, chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { requirePrivateFolder } from '../../../../infra/sqlite/dataFolder.ts';
import { readModelsFile } from '../../../../infra/openai/modelsFile.ts';
import { temporaryFolder } from '../../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let warned: string[];
beforeEach(async () => {
  folder = await temporaryFolder();
  warned = [];
  await mkdir(join(folder, 'tlog', 'turnlog'), { recursive: true, mode: 0o700 });
  await mkdir(join(folder, 'read-models'), { mode: 0o700 });
  for (const file of ['events.db', 'read-models/1.db', 'tlog/.current'])
    await writeFile(join(folder, file), '', { mode: 0o600 });
});
afterEach(() => rm(folder, { recursive: true }));

const logger = { warn: (_fields: object, message: string) => void warned.push(message) };
const check = () => requirePrivateFolder(folder, logger as never);
const refusal = (problem: string) =>
  expect.objectContaining({
    code: 'configuration_invalid',
    message: expect.stringContaining(problem),
  });

test('a data folder that only its owner may change is taken', async () => {
  await chmod(folder, 0o755);
  check();
  expect(warned).toEqual([]);
});

test.each(['', 'events.db', 'read-models', 'read-models/1.db', 'tlog', 'tlog/.current'])(
  'a data folder in which every user may change "%s" is refused',
  async (name) => {
    await chmod(join(folder, name), 0o777);
    expect(check).toThrow(refusal(`chmod -R o-w ${join(folder, name)}`));
  },
);

test('so is one with a file of another user', async () => {
  // What belongs to root is trusted, and only root can give a file away.
  const owner = process.getuid!() || 12_345;
  await chown(join(folder, 'events.db'), owner, -1);
  const user = jest.spyOn(process, 'getuid').mockReturnValue(owner + 1);
  expect(check).toThrow(refusal(`belongs to another user (${owner})`));
  // Root may have no way to change the owner, as on a file system of another machine.
  user.mockReturnValue(0);
  expect(check).not.toThrow();
  user.mockRestore();
});

test.each(['webhooks.json', 'tlog/checkpoint'])('so is one with a FIFO as %s', (name) => {
  execFileSync('mkfifo', ['-m', '600', join(folder, name)]);
  expect(check).toThrow(refusal('neither a file nor a folder'));
});

test('what a group may change is warned of', async () => {
  await chmod(join(folder, 'events.db'), 0o660);
  check();
  expect(warned).toEqual([expect.stringContaining(`chmod -R g-w ${folder}`)]);
});

test('a models file that every user may change is refused', async () => {
  const file = join(folder, 'models.json');
  await writeFile(file, '{}');
  await chmod(file, 0o646);
  await expect(readModelsFile(file)).rejects.toEqual(refusal(`chmod o-w ${file}`));
});
