/** Backups and restores that ended at their beginning, and what opens their folders meanwhile. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runCliWith } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
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

test('the keys of an unfinished restore are not imported, wherever it puts them', async () => {
  const [target, keys, copy, ids] = [newFolder(), newFolder(), newFolder(), newFolder()];
  const config = { DATA_DIR: target, KEYS_DIR: keys };
  const opened = await cliIn(data, 'accounts', 'open', 'held', '--json');
  const { account_id: held } = JSON.parse(opened.out) as { account_id: string };
  await cliIn(data, 'accounts', 'hold', held, 'on', '--reason', 'a case');
  expect(await cliIn(data, 'backup', copy)).toMatchObject({ code: 0 });
  await writeFile(ids, held);
  const restore = (...args: string[]) => runCliWith(config, 'restore', copy, ...args);
  expect(await restore('--erased', ids)).toMatchObject({ code: 1 });
  expect(await cliIn(data, 'text-keys', 'import', keys)).toMatchObject({
    code: 1,
    err: expect.stringContaining('is not finished'),
  });
  expect(await restore()).toMatchObject({ code: 0 });
  for (const folder of [target, keys])
    expect(await readdir(folder)).not.toContain('restore-unfinished');
}, 60_000);

test.each([
  ['a backup', 'backup.json', 'holds a backup'],
  ['an unfinished restore', 'restore-unfinished', 'is not finished'],
])(
  'the folder of %s is opened neither by a relay alone nor by a copy of events',
  async (_kind, name, problem) => {
    const target = newFolder();
    await cp(data, target, { recursive: true });
    await writeFile(join(target, name), target);
    const relay = startServerProcess(
      {
        DATA_DIR: target,
        EVENTSTOREDB_URL: 'esdb://127.0.0.1:1?tls=false',
        KAFKA_BROKERS: '127.0.0.1:1',
      },
      ['--services', 'relay'],
    );
    await eventually(
      async () => relay.errors(),
      (errors) => errors !== '',
    );
    relay.kill('SIGKILL');
    expect(relay.errors()).toContain(problem);
    const other = newFolder();
    for (const [from, to] of [
      [target, other],
      [data, target],
    ] as const)
      expect(await cliIn(data, 'events', 'copy', '--from', from, '--to', to)).toMatchObject({
        code: 1,
        err: expect.stringContaining(problem),
      });
    expect(existsSync(other)).toBe(false);
  },
  60_000,
);
