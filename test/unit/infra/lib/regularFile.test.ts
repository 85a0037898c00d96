import { execFileSync } from 'node:child_process';
import { mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readMasterKeys } from '../../../../infra/files/masterKeyFile.ts';
import { openOneFileTree } from '../../../../infra/files/tileReader.ts';
import { openFileWebhookProgress } from '../../../../infra/files/webhookProgress.ts';
import {
  readRangeSync,
  readRegularFile,
  readRegularFileSync,
} from '../../../../infra/lib/regularFile.ts';
import { readModelsFile } from '../../../../infra/openai/modelsFile.ts';
import { readToolsFile } from '../../../../infra/tools/toolsFile.ts';
import { openKeptCheckpoints } from '../../../../infra/witness/keptCheckpoints.ts';
import { readWitnessesFile } from '../../../../infra/witness/witnessesFile.ts';
import { temporaryFolder } from '../../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  file = join(folder, 'file');
});
afterEach(() => rm(folder, { recursive: true }));

const makeFifo = (path: string) => execFileSync('mkfifo', ['-m', '600', path]);

test('a regular file is read, also through a symbolic link', async () => {
  await writeFile(join(folder, 'target'), 'text');
  await symlink(join(folder, 'target'), file);
  expect((await readRegularFile(file)).toString()).toBe('text');
  expect(readRegularFileSync(file).toString()).toBe('text');
});

test('a part of a file is read, and less at its end', async () => {
  await writeFile(file, 'a text');
  expect(readRangeSync(file, 2, 3).toString()).toBe('tex');
  expect(readRangeSync(file, 4, 100).toString()).toBe('xt');
});

test('a folder is none', async () => {
  await mkdir(file);
  await expect(readRegularFile(file)).rejects.toThrow('is not a regular file');
  expect(() => readRegularFileSync(file)).toThrow('is not a regular file');
  expect(() => readRangeSync(file, 0, 1)).toThrow('is not a regular file');
});

test.each([
  ['models', readModelsFile],
  ['tools', (path: string) => readToolsFile(path, {})],
  ['witnesses', readWitnessesFile],
])('a file of %s of gigabytes is not read', async (_what, read) => {
  await writeFile(file, '');
  await truncate(file, 4 * 2 ** 30);
  await expect(read(file)).rejects.toThrow(
    'it has 4294967296 bytes, and at most 8388608 are allowed',
  );
});

/** A read that waits for a writer never settles, and never lets the process end. */
describe('a FIFO is refused at once as', () => {
  test.each<[string, (path: string) => Promise<unknown>]>([
    ['the progress of webhooks', (path) => openFileWebhookProgress(path).load()],
    ['the models file', readModelsFile],
    ['the tools file', (path) => readToolsFile(path, {})],
    ['the witnesses file', readWitnessesFile],
    ['a master key file', async (path) => readMasterKeys(path)],
    [
      'a kept checkpoint',
      async (path) => {
        const read = await openKeptCheckpoints(path).read(new AbortController().signal);
        if ('trouble' in read) throw new Error(read.trouble);
      },
    ],
  ])('%s', async (_what, read) => {
    makeFifo(file);
    await expect(read(file)).rejects.toThrow();
  });

  test('the current tree', async () => {
    makeFifo(join(folder, '.current'));
    await expect(openOneFileTree(folder).state()).rejects.toThrow('is not a regular file');
  });

  test('a temporary file, which is replaced', async () => {
    makeFifo(`${file}.tmp`);
    const progress = openFileWebhookProgress(file);
    await progress.save(new Map([['webhook_1', { revision: 1 }]]));
    expect(await openFileWebhookProgress(file).load()).toEqual(
      new Map([['webhook_1', { revision: 1 }]]),
    );
  });
});
