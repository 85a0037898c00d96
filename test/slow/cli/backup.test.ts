/** `backup` beside a running service, and `restore` into other folders. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  appendFile,
  copyFile,
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { acquireBackupLock } from '../../../infra/sqlite/serverLock.ts';
import { makeSigningKey } from '../../../services/compose/signingKeys.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { runCliWith, startCliWith } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let service: TestService;
let elsewhere: string;
let agent: string;
/** A backup, and the checkpoint that was kept when it was made. */
let folder: string;
let kept: string;
let vkey: string;

async function cliIn(data: string, ...args: string[]): Promise<Record<string, any>> {
  const { code, out, err } = await runCliWith({ DATA_DIR: data }, '--json', ...args);
  const [, reason] = /"message":"((?:[^"\\]|\\.)*)"/.exec(err) ?? [];
  return { code, reason, ...(out === '' ? {} : (JSON.parse(out) as object)) };
}
const cli = (...args: string[]) => cliIn(service.folder, ...args);
const newFolder = (): string => join(elsewhere, randomUUID());
const refused = (problem: string) => ({ code: 1, reason: expect.stringContaining(problem) });

async function run(input: string): Promise<string> {
  const { body } = await service.post(`/v1/agents/${agent}/run`, { input });
  return body.data.session_id as string;
}

const treeFolder = async (data: string): Promise<string> =>
  join(data, 'tlog', (await readFile(join(data, 'tlog', '.current'), 'utf8')).trim());

/** Keeps the newest checkpoint elsewhere, once it covers all events. */
async function keepCheckpoint(): Promise<string> {
  await eventually(
    () => service.get('/health/ready'),
    ({ body }) => body.data.transparency_log?.lag_ms === 0,
  );
  const file = newFolder();
  await copyFile(join(await treeFolder(service.folder), 'checkpoint'), file);
  return file;
}

/** A backup for a test that changes it. */
async function copyOfBackup(): Promise<string> {
  const copy = newFolder();
  await cp(folder, copy, { recursive: true });
  await cp(`${folder}-keys`, `${copy}-keys`, { recursive: true });
  return copy;
}

/** Works with a service on a folder, and stops it. */
async function served<Result>(data: string, work: () => Promise<Result>): Promise<Result> {
  const before = service.folder;
  await service.restart({ DATA_DIR: data });
  try {
    return await work();
  } finally {
    await service.restart({ DATA_DIR: before });
  }
}

beforeAll(async () => {
  elsewhere = await temporaryFolder();
  service = await startTestService();
  agent = await service.createAgent();
  await run('first');
  kept = await keepCheckpoint();
  folder = newFolder();
  expect(await cli('backup', folder)).toMatchObject({ code: 0, complete: true, misfit: null });
  ({
    vkeys: [vkey],
  } = await cli('audit', 'vkey'));
}, 60_000);
afterAll(async () => {
  await service.close();
  await rm(elsewhere, { recursive: true });
});

describe('backup', () => {
  test('has the log in one folder and the keys in another one, which only their owner may read', async () => {
    const modes = async (path: string): Promise<Record<string, string>> => {
      const found: Record<string, string> = {};
      for (const name of await readdir(path))
        found[name] = ((await lstat(join(path, name))).mode & 0o777).toString(8);
      return found;
    };
    expect(await modes(folder)).toEqual({
      'backup.json': '600',
      'backup.lock': '600',
      'events.db': '600',
      tlog: '700',
    });
    expect(await modes(`${folder}-keys`)).toEqual({
      'backup.json': '600',
      'keys.db': '600',
      'log-signing-key.pem': '600',
      'master.key': '600',
    });
    expect(existsSync(join(await treeFolder(folder), 'checkpoint'))).toBe(true);
  });

  test('puts the keys beside the log, or into another folder, where an option says so', async () => {
    const [beside, apart, keys] = [newFolder(), newFolder(), newFolder()];
    expect((await cli('backup', beside, '--keys-beside')).code).toBe(0);
    expect(await readdir(join(beside, 'keys'))).toContain('keys.db');
    expect((await cli('backup', apart, '--keys', keys)).code).toBe(0);
    expect(await readdir(keys)).toContain('keys.db');
    expect(existsSync(`${apart}-keys`)).toBe(false);
    expect((await cliIn(newFolder(), 'restore', beside, '--keys-beside')).code).toBe(0);
    expect((await cliIn(newFolder(), 'restore', apart, '--keys', keys)).code).toBe(0);
  }, 60_000);

  test('is of one moment while runs and erasures go on', async () => {
    const stop = new AbortController();
    const sessions: string[] = [];
    const load = (async () => {
      while (!stop.signal.aborted) {
        sessions.push(await run('again'));
        if (sessions.length % 3 === 0)
          await service.send('DELETE', `/v1/sessions/${sessions.at(-2)}`, '');
      }
    })();
    try {
      for (let round = 0; round < 3; round += 1) {
        const target = newFolder();
        expect(await cli('backup', target)).toMatchObject({ code: 0, misfit: null });
        const data = newFolder();
        expect(await cliIn(data, 'restore', target)).toMatchObject({ code: 0, misfit: null });
        const status = await cliIn(data, 'text-keys', 'status');
        expect(status).toMatchObject({ code: 0, erased_with_keys: { count: 0 } });
      }
    } finally {
      stop.abort();
      await load;
    }
    expect(sessions.length).toBeGreaterThan(0);
  }, 120_000);

  test('goes on after an interruption, and is no backup before it is complete', async () => {
    const target = newFolder();
    const env = { DATA_DIR: service.folder };
    const cut = startCliWith(env, 'backup', target);
    cut.kill('SIGINT');
    expect((await cut.ended).code).toBe(130);
    const verifying = startCliWith(env, 'backup', target);
    await verifying.told((err) => err.includes('events verified'));
    verifying.kill('SIGINT');
    expect(await verifying.ended).toMatchObject({
      code: 130,
      out: expect.stringContaining('The same command continues'),
    });
    expect(await cliIn(newFolder(), 'restore', target)).toMatchObject(refused('is not complete'));
    expect(await cli('backup', target)).toMatchObject({ code: 0, complete: true });
    expect((await cliIn(newFolder(), 'restore', target)).code).toBe(0);
  }, 60_000);

  test('is not written into a folder with anything else, or twice at once', async () => {
    expect(await cli('backup', folder)).toMatchObject(refused('holds the backup of'));
    const full = newFolder();
    await mkdir(full);
    await writeFile(join(full, 'mine'), '');
    expect(await cli('backup', full)).toMatchObject(refused('is not empty'));
    expect(await cli('backup', newFolder(), '--keys', full)).toMatchObject(refused('not empty'));
    expect(await readdir(full)).toEqual(['mine']);
    const busy = newFolder();
    await mkdir(busy);
    const lock = acquireBackupLock(busy);
    expect(await cli('backup', busy)).toMatchObject(refused('Another backup is being written'));
    lock.release();
    expect((await cli('backup', busy)).code).toBe(0);
  }, 60_000);

  test('is not written into the folders of the service, whatever their names', async () => {
    const link = newFolder();
    await symlink(service.folder, link);
    for (const target of [service.folder, join(service.folder, 'backup'), join(link, 'backup')])
      expect(await cli('backup', target)).toMatchObject(refused('must not contain each other'));
    const inside = newFolder();
    expect(await cli('backup', inside, '--keys', join(inside, 'k'))).toMatchObject(
      refused('must not contain each other'),
    );
    expect(await readdir(service.folder)).not.toContain('backup');
    const dangling = newFolder();
    await symlink(newFolder(), dangling);
    expect(await cli('backup', dangling)).toMatchObject(refused('leads nowhere'));
  }, 60_000);

  test('follows no link in an unfinished backup', async () => {
    const target = newFolder();
    const cut = startCliWith({ DATA_DIR: service.folder }, 'backup', target);
    await cut.told((err) => err.includes('copied'));
    cut.kill('SIGINT');
    await cut.ended;
    await rm(join(target, 'events.db'), { force: true });
    await symlink(join(service.folder, 'events.db'), join(target, 'events.db'));
    expect(await cli('backup', target)).toMatchObject(refused('neither a file nor a folder'));
  }, 60_000);

  test('says what does not fit, and is restored only where that is accepted', async () => {
    const data = newFolder();
    expect((await cliIn(data, 'restore', folder)).code).toBe(0);
    const log = new DatabaseSync(join(data, 'events.db'));
    log.exec(
      `UPDATE events SET data = replace(data, 'scripted', 'another') WHERE type LIKE 'agent.%'`,
    );
    log.close();
    const target = newFolder();
    const made = await cliIn(data, 'backup', target);
    expect(made).toMatchObject({ code: 1, complete: true, misfit: expect.any(String) });
    expect(await cliIn(newFolder(), 'restore', target)).toMatchObject(refused('does not fit'));
    expect(await cliIn(newFolder(), 'restore', target, '--damaged')).toMatchObject({
      code: 0,
      misfit: made['misfit'],
    });
  }, 60_000);

  test('has the events and the keys of a service whose transparency log is damaged', async () => {
    const data = newFolder();
    expect((await cliIn(data, 'restore', folder)).code).toBe(0);
    await rm(join(await treeFolder(data), 'tile'), { recursive: true });
    const target = newFolder();
    expect(await cliIn(data, 'backup', target)).toMatchObject({
      code: 1,
      complete: true,
      misfit: expect.any(String),
      not_included: [expect.stringContaining('transparency log could not be copied')],
    });
    expect(await readdir(target)).toContain('events.db');
  }, 60_000);
});

describe('restore', () => {
  test('continues the same log: same origin and key, so that kept checkpoints and bundles fit', async () => {
    const session = await run('in a bundle');
    const target = newFolder();
    expect((await cli('backup', target)).code).toBe(0);
    const bundle = newFolder();
    expect((await cli('audit', 'export', '--session', session, '--out', bundle)).code).toBe(0);
    const data = newFolder();
    expect(await cliIn(data, 'restore', target, '--checkpoint', kept)).toMatchObject({
      code: 0,
      refusal: null,
      compared: [{ name: kept }],
    });
    await served(data, async () => {
      expect((await service.get(`/v1/sessions/${session}/events`)).status).toBe(200);
      await run('after the restore');
      await keepCheckpoint();
    });
    expect(await cliIn(data, 'audit', 'vkey')).toMatchObject({ vkeys: [vkey] });
    const verified = await cliIn(data, 'audit', 'verify', '--texts', '--checkpoint', kept);
    expect(verified).toMatchObject({ code: 0, misfit: null, tree: { fault: null } });
    expect((await cliIn(data, 'audit', 'verify-bundle', bundle, '--vkey', vkey)).code).toBe(0);
  }, 60_000);

  test('refuses a backup that is older than a kept checkpoint, unless that is declared', async () => {
    await run('after the backup');
    const newer = await keepCheckpoint();
    const data = newFolder();
    const restored = ['restore', folder, '--checkpoint', newer];
    expect(await cliIn(data, ...restored)).toMatchObject(refused('The log was rolled back'));
    expect(await cliIn(data, 'audit', 'verify')).toMatchObject(refused('is not finished'));
    await expect(served(data, async () => undefined)).rejects.toThrow('is not finished');
    await service.restart({ DATA_DIR: service.folder });
    const declared = await cliIn(data, ...restored, '--accept-restored', 'a disk broke');
    expect(declared).toMatchObject({ code: 0, refusal: expect.stringContaining('rolled back') });
    expect(await cliIn(data, 'log', 'show')).toMatchObject({ log_id: declared['log_id'] });
  }, 60_000);

  test('refuses a checkpoint of another log even where a restore is declared, and one that it can not read', async () => {
    const other = await readFile(kept, 'utf8');
    const file = newFolder();
    await writeFile(file, other.replaceAll(/turnlog\/[^\n ]*/g, `turnlog/${randomUUID()}`));
    const args = ['restore', folder, '--checkpoint', file, '--accept-restored', 'test'];
    expect(await cliIn(newFolder(), ...args)).toMatchObject(refused('of another log'));
    expect(await cliIn(newFolder(), 'restore', folder, '--checkpoint', newFolder())).toMatchObject(
      refused('can’t be read'),
    );
  }, 60_000);

  test('refuses a place without a checkpoint of this log, and with one that it can not read, however it is named', async () => {
    const empty = newFolder();
    await mkdir(empty);
    expect(await cliIn(newFolder(), 'restore', folder, '--checkpoint', empty)).toMatchObject(
      refused('holds no checkpoint of the transparency log'),
    );
    await writeFile(join(empty, 'damaged'), 'no note');
    const place = `./${relative(process.cwd(), empty)}`;
    expect(await cliIn(newFolder(), 'restore', folder, '--checkpoint', place)).toMatchObject(
      refused('holds no checkpoint: '),
    );
    await rm(join(empty, 'damaged'));
    await copyFile(kept, join(empty, 'checkpoint'));
    expect(await cliIn(newFolder(), 'restore', folder, '--checkpoint', place)).toMatchObject({
      code: 0,
      compared: [{ name: join(empty, 'checkpoint') }],
    });
  }, 60_000);

  test('names a configured place that it could not compare with', async () => {
    const env = { DATA_DIR: newFolder(), LOG_KEPT_CHECKPOINTS: newFolder() };
    const { code, out } = await runCliWith(env, 'restore', folder);
    expect({ code, out }).toMatchObject({
      code: 0,
      out: expect.stringContaining(`Not compared: ${env.LOG_KEPT_CHECKPOINTS} can’t be read`),
    });
  }, 60_000);

  test('erases again what was erased since, by a list of ids or by receipts, before it is served', async () => {
    const [listed, proven] = [await run('listed'), await run('proven')];
    const target = newFolder();
    expect((await cli('backup', target)).code).toBe(0);
    const later = await run('later');
    for (const session of [listed, proven, later])
      expect((await service.send('DELETE', `/v1/sessions/${session}`, '')).status).toBe(200);
    await keepCheckpoint();
    const [ids, receipts] = [newFolder(), newFolder()];
    await writeFile(ids, `# erased in May\n${listed}\n\n${later}\n`);
    await mkdir(receipts);
    const receipt = ['audit', 'receipt', proven, '--out', join(receipts, 'proven.json')];
    expect((await cli(...receipt)).code).toBe(0);

    const byList = newFolder();
    expect(await cliIn(byList, 'restore', target, '--erased', ids)).toMatchObject({
      code: 0,
      refusal: null,
      erasures: [
        { id: listed, outcome: 'erased_again', source: ids },
        { id: later, outcome: 'not_in_backup', source: ids },
      ],
    });
    await served(byList, async () => {
      expect((await service.get(`/v1/sessions/${listed}/events`)).status).toBe(410);
      expect((await service.get(`/v1/sessions/${proven}/events`)).status).toBe(200);
    });

    const byReceipt = newFolder();
    const args = ['restore', target, '--receipts', receipts];
    expect(await cliIn(byReceipt, ...args)).toMatchObject(refused('proven.json knows'));
    const declared = [...args, '--accept-restored', 'a disk broke'];
    expect(await cliIn(byReceipt, ...declared)).toMatchObject({
      code: 0,
      erasures: [{ id: proven, outcome: 'erased_again' }],
    });
    expect(await cliIn(byReceipt, 'text-keys', 'status')).toMatchObject({
      code: 0,
      erased_with_keys: { count: 0 },
    });
    await served(byReceipt, async () => {
      expect((await service.get(`/v1/sessions/${proven}/events`)).status).toBe(410);
    });
  }, 120_000);

  test('erases accounts again, and is not finished while a legal hold forbids an erasure', async () => {
    const open = async (name: string) =>
      (await cli('accounts', 'open', name))['account_id'] as string;
    const [gone, held] = [await open('gone'), await open('held')];
    expect((await cli('accounts', 'hold', held, 'on', '--reason', 'a case')).code).toBe(0);
    const target = newFolder();
    expect((await cli('backup', target)).code).toBe(0);
    expect((await cli('accounts', 'erase', gone, '--confirm', gone)).code).toBe(0);
    const ids = newFolder();
    await writeFile(ids, `${gone}\n${held}\n`);
    const data = newFolder();
    const restored = ['restore', target, '--erased', ids];
    const refusal = refused(`${held} was not erased again`);
    expect(await cliIn(data, ...restored)).toMatchObject(refusal);
    expect(await cliIn(data, 'audit', 'verify')).toMatchObject(refused('is not finished'));
    await writeFile(ids, gone);
    expect(await cliIn(data, ...restored)).toMatchObject({
      code: 0,
      erasures: [{ id: gone, outcome: 'erased_again' }],
    });
    expect((await cliIn(data, 'audit', 'verify', '--texts')).code).toBe(0);
    expect(await cliIn(data, 'text-keys', 'status')).toMatchObject({ code: 0, open_erasures: [] });
  }, 120_000);

  test('refuses receipts of other logs and lists without ids', async () => {
    const file = newFolder();
    await writeFile(file, 'Mrs Smith\n');
    for (const [option, problem] of [
      ['--receipts', 'is no receipt of this log'],
      ['--erased', 'line 1: there has to be the id'],
    ] as const)
      expect(await cliIn(newFolder(), 'restore', folder, option, file)).toMatchObject(
        refused(problem),
      );
  }, 60_000);

  test('refuses a list that can not be read before anything is restored', async () => {
    const [data, missing] = [newFolder(), newFolder()];
    expect(await cliIn(data, 'restore', folder, '--erased', missing)).toMatchObject(
      refused(missing),
    );
    expect(existsSync(data)).toBe(false);
  }, 60_000);

  test('is the only command that opens a backup: another one would change it', async () => {
    const copy = await copyOfBackup();
    const only = refused(`Restore it into other folders: npm run cli -- restore ${copy}`);
    expect(await cliIn(copy, 'audit', 'verify')).toMatchObject(only);
    for (const [from, to] of [
      [copy, newFolder()],
      [service.folder, copy],
    ])
      expect(
        await cliIn(newFolder(), 'events', 'copy', '--from', from!, '--to', to!),
      ).toMatchObject(only);
    const { code, err } = await runCliWith(
      { DATA_DIR: newFolder(), KEYS_DIR: `${copy}-keys` },
      'accounts',
      'open',
      'x',
    );
    expect({ code, err }).toMatchObject({
      code: 1,
      err: expect.stringContaining(`${copy}-keys holds a backup`),
    });
    const server = startServerProcess({ DATA_DIR: copy });
    expect(await server.exited).toBe(1);
    expect(server.errors()).toContain(`${copy} holds a backup`);
    expect(await cliIn(newFolder(), 'restore', copy)).toMatchObject({ code: 0 });
  }, 60_000);

  test('refuses folders that are not empty, and changes nothing there', async () => {
    expect(await cli('restore', folder)).toMatchObject(refused('is not empty'));
    const data = newFolder();
    await mkdir(data);
    await writeFile(join(data, 'mine'), 'x');
    expect(await cliIn(data, 'restore', folder)).toMatchObject(refused('is not empty'));
    expect(await readdir(data)).toEqual(['mine']);
    const env = { DATA_DIR: newFolder(), KEYS_DIR: data };
    expect((await runCliWith(env, 'restore', folder)).err).toContain('is not empty');
    expect(existsSync(env.DATA_DIR)).toBe(false);
    expect(await cliIn(join(folder, 'data'), 'restore', folder)).toMatchObject(
      refused('must not contain each other'),
    );
  }, 60_000);

  test.each(['events.db', 'tlog/.current'])(
    'refuses a backup whose %s was changed or is gone',
    async (name) => {
      const copy = await copyOfBackup();
      await appendFile(join(copy, name), 'x');
      expect(await cliIn(newFolder(), 'restore', copy)).toMatchObject(
        refused(`${name} is not the file that was written`),
      );
      await rm(join(copy, name));
      expect(await cliIn(newFolder(), 'restore', copy)).toMatchObject(
        refused(`${name} is missing`),
      );
    },
    60_000,
  );

  test.each(['keys.db', 'master.key', 'log-signing-key.pem'])(
    'refuses keys whose %s is gone',
    async (name) => {
      const copy = await copyOfBackup();
      await rm(join(`${copy}-keys`, name));
      const data = newFolder();
      expect(await cliIn(data, 'restore', copy)).toMatchObject(refused(`${name} is missing`));
      expect(existsSync(data)).toBe(false);
    },
    60_000,
  );

  test('restores keys into a folder of their own, also in the data folder, and again after a failure', async () => {
    const data = newFolder();
    const env = { DATA_DIR: data, KEYS_DIR: join(data, 'keys') };
    await mkdir(env.KEYS_DIR, { recursive: true });
    const missing = ['restore', folder, '--checkpoint', newFolder()];
    expect((await runCliWith(env, ...missing)).err).toContain('can’t be read');
    expect(await readdir(env.KEYS_DIR)).toEqual(expect.arrayContaining(['keys.db', 'master.key']));
    const other = { ...env, KEYS_DIR: join(elsewhere, 'foreign') };
    await mkdir(other.KEYS_DIR);
    await writeFile(join(other.KEYS_DIR, 'keys.db'), 'of another service');
    expect((await runCliWith(other, 'restore', folder)).err).toContain('foreign is not empty');
    expect(await readdir(other.KEYS_DIR)).toEqual(['keys.db']);
    expect((await runCliWith(env, 'restore', folder)).code).toBe(0);
    expect((await runCliWith(env, 'audit', 'verify', '--texts')).code).toBe(0);
  }, 60_000);

  test('refuses a backup with a file that is not part of it', async () => {
    const copy = await copyOfBackup();
    await mkdir(join(copy, 'read-models'));
    await writeFile(join(copy, 'read-models', 'forged.db'), '');
    expect(await cliIn(newFolder(), 'restore', copy)).toMatchObject(
      refused('forged.db is not part of the backup'),
    );
  }, 60_000);

  test('refuses the keys of another backup, and a tree that lacks a tile', async () => {
    const other = newFolder();
    expect((await cli('backup', other)).code).toBe(0);
    expect(await cliIn(newFolder(), 'restore', folder, '--keys', `${other}-keys`)).toMatchObject(
      refused('are of another backup'),
    );
    expect(await cliIn(newFolder(), 'restore', folder, '--keys', newFolder())).toMatchObject(
      refused('There is no backup in'),
    );
    const copy = await copyOfBackup();
    await rename(join(await treeFolder(copy), 'tile'), join(elsewhere, randomUUID()));
    expect(await cliIn(newFolder(), 'restore', copy)).toMatchObject(refused('does not fit'));
  }, 60_000);

  test('names a file where a folder should be, for backup and restore', async () => {
    const file = newFolder();
    await writeFile(file, '');
    for (const command of ['backup', 'restore'])
      expect(await cli(command, join(file, 'below'))).toMatchObject(
        refused('a file is in the way'),
      );
  }, 60_000);

  test('refuses another LOG_ORIGIN, and a signing key file with another key', async () => {
    const at = (env: Record<string, string>) =>
      runCliWith({ DATA_DIR: newFolder(), ...env }, 'restore', folder);
    expect((await at({ LOG_ORIGIN: 'other' })).err).toContain('set it to the same name');
    const foreign = newFolder();
    expect((await cliIn(foreign, 'accounts', 'open', 'x')).code).toBe(0);
    const LOG_SIGNING_KEY_FILE = join(foreign, 'key.pem');
    makeSigningKey(LOG_SIGNING_KEY_FILE);
    expect((await at({ LOG_SIGNING_KEY_FILE })).err).toContain('lacks keys of the backup');
    const missing = join(foreign, 'restored.pem');
    expect((await at({ LOG_SIGNING_KEY_FILE: missing })).code).toBe(0);
    expect(await readFile(missing)).toEqual(
      await readFile(join(`${folder}-keys`, 'log-signing-key.pem')),
    );
  }, 60_000);
});
