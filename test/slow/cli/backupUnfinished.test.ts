/** Backups and restores that ended at their beginning, and who opens their folders meanwhile. */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runCliWith } from '../../support/processes/cliProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let elsewhere: string;
let data: string;
let backup: string;

const newFolder = (): string => join(elsewhere, randomUUID());
const cliIn = (folder: string, ...args: string[]) => runCliWith({ DATA_DIR: folder }, ...args);

beforeAll(async () => {
  elsewhere = await temporaryFolder();
  [data, backup] = [newFolder(), newFolder()];
  expect(await cliIn(data, 'accounts', 'open', 'first')).toMatchObject({ code: 0 });
  expect(await cliIn(data, 'backup', backup)).toMatchObject({ code: 0 });
}, 60_000);
afterAll(() => rm(elsewhere, { recursive: true }));

test('a backup that was killed while it wrote its first file goes on', async () => {
  const target = newFolder();
  for (const folder of [target, `${target}-keys`]) {
    await mkdir(folder);
    await writeFile(join(folder, 'backup.json.tmp'), '{');
  }
  expect(await cliIn(data, 'backup', target)).toMatchObject({ code: 0 });
  expect(await readdir(target)).not.toContain('backup.json.tmp');
  expect(await cliIn(newFolder(), 'restore', target)).toMatchObject({ code: 0 });
}, 60_000);

test('a restore that was killed while it wrote its first file begins anew', async () => {
  const target = newFolder();
  await mkdir(target);
  await writeFile(join(target, 'restore-unfinished.tmp'), '/');
  expect(await cliIn(target, 'restore', backup)).toMatchObject({ code: 0 });
  expect((await readdir(target)).filter((name) => name.startsWith('restore'))).toEqual([]);
}, 60_000);
