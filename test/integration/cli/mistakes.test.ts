/** What an operator gets wrong, and a terminal that takes nothing any more. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { newEvent, newStream } from '../../contracts/eventStore/support.ts';
import { runCli, startCliWith } from '../../support/processes/cliProcess.ts';
import { plainEnvironment } from '../../support/processes/plainEnvironment.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const SOME_VKEY = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';

let elsewhere: string;
let data: string;
beforeAll(async () => {
  elsewhere = await temporaryFolder();
  data = join(elsewhere, 'data');
  expect((await runCli(data, 'accounts', 'open', 'One')).code).toBe(0);
}, 30_000);
afterAll(() => rm(elsewhere, { recursive: true }));

test.each([
  ['list', 'issue'].map((command) => ['keys', command, '--account', 'acct_typo']),
  [['accounts', 'limits', 'acct_typo']],
])('an account that is not there is an error: %j', async (...commands) => {
  for (const command of commands) {
    const { code, out, err } = await runCli(data, ...command);
    expect({ code, out, err }).toEqual({
      code: 1,
      out: '',
      err: 'There is no account acct_typo.\n',
    });
  }
});

test('a command without the options that it needs says what to set', async () => {
  const folder = await runCli('./no-data', 'keys', 'list');
  expect(folder.err).toBe(
    `There is no event log in ${resolve('no-data')}. Set DATA_DIR to the data folder of the service, or start the service once to make it.\n`,
  );
  const database = await runCli(data, 'database', 'migrate');
  expect(database.err).toMatch(/^Set DATABASE_URL to .*, for example postgres:\/\/\S+\n$/);
});

test.each<[string[]]>([[[]], [['key_1']], [['--account', 'acct_1']]])(
  'keys rotate %j does nothing, and names both rotations',
  async (args) => {
    expect(await runCli(data, 'keys', 'rotate', ...args)).toEqual({
      code: 2,
      out: '',
      err: expect.stringMatching(/ text-keys rotate\..* POST \/v1\/keys\/\{keyId\}\/rotate\.\n$/),
    });
  },
);

test('a declaration needs a reason', async () => {
  const { code } = await runCli(data, 'log', 'accept-restored', '--reason', ' ');
  expect(code).toBe(2);
  expect(JSON.parse((await runCli(data, 'log', 'show', '--json')).out)).toMatchObject({
    declarations: [],
  });
});

test('so does a legal hold', async () => {
  const [account] = JSON.parse((await runCli(data, '--json', 'accounts', 'list')).out);
  const hold = ['accounts', 'hold', account.account_id, 'on', '--reason', ' '];
  expect(await runCli(data, ...hold)).toMatchObject({
    code: 2,
    err: expect.stringContaining('A reason has 1 to 256 characters.'),
  });
});

test.each(['--vkey', '--witness'])('%s that is no key is no verdict', async (option) => {
  const file = join(elsewhere, 'data', 'events.db');
  expect(await runCli(data, 'audit', 'verify-bundle', file, option, 'garbage')).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringContaining('A vkey reads <name>+<8 hex digits>+<base64>.'),
  });
  // The example of golang.org/x/mod/sumdb/note, with the line end of a file.
  const vkey = `${SOME_VKEY}\r\n`;
  const { err } = await runCli(data, 'audit', 'verify-bundle', file, option, vkey);
  expect(err).not.toContain('vkey');
});

test('a copy to a file names --to', async () => {
  const file = join(data, 'instance-id');
  await writeFile(file, '');
  const { code, err } = await runCli(data, 'events', 'copy', '--from', data, '--to', file);
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringMatching(/ a file is in the way\. Set --to to a folder /),
  });
});

test('a copy onto itself is refused', async () => {
  const args = ['events', 'copy', '--from', data, '--to', `${data}/../data/`];
  const { code, err } = await runCli(data, ...args);
  expect(code).toBe(2);
  expect(err).toContain('the same store');
});

test('a copy that goes on where none began names the stream', async () => {
  expect((await runCli(data, 'keys', 'issue')).code).toBe(0);
  const to = join(elsewhere, 'half');
  const args = ['--from', data, '--to', to, '--after', '0000000000000001'];
  const { code, err } = await runCli(data, 'events', 'copy', ...args);
  expect(code).toBe(1);
  expect(err).toMatch(
    /^The target can't continue the stream account-acct_\w+: .* earlier events are missing/,
  );
});

test.each(['mongodb://admin:hidden@host:2113', 'ESDB://admin:hidden@host', 'env:URL'])(
  'a store that is not spoken with is no folder: %s',
  async (store) => {
    const env = { DATA_DIR: data, URL: 'mongodb://admin:hidden@host:2113' };
    const { code, err } = await startCliWith(env, 'events', 'copy', '--from', data, '--to', store)
      .ended;
    expect(code).toBe(2);
    expect(err).toContain('neither a data folder nor a cluster');
    expect(err).not.toContain('hidden');
    expect(existsSync(store)).toBe(false);
  },
);

test('a file that never ends is not read to its end', async () => {
  const args = ['audit', 'verify-receipt', '/dev/zero', '--vkey', SOME_VKEY];
  const { code, err } = await runCli(data, ...args);
  expect({ code, err }).toEqual({
    code: 1,
    err: '/dev/zero: it is larger than 64 MiB\n',
  });
});

/** A command whose output goes where it says; resolves with its exit code and what it told. */
async function runInto(stdio: 'out' | 'err', sink: number | 'pipe', ...args: string[]) {
  const child = spawn(process.execPath, ['services/cli/main.ts', ...args], {
    env: { ...plainEnvironment(), DATA_DIR: data, LOG_LEVEL: 'warn' },
    stdio: ['ignore', stdio === 'out' ? sink : 'pipe', stdio === 'err' ? sink : 'pipe'],
  });
  if (sink === 'pipe') child.stdout?.destroy();
  let told = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (told += text));
  const [code] = (await once(child, 'close')) as [number];
  return { code, told };
}
const fullDisk = (): number => openSync('/dev/full', 'w');

test.each([
  ['is full', fullDisk],
  ['is closed', () => 'pipe' as const],
])('a result that can not be written, because its output %s, is told of', async (_, sink) => {
  const { code, told } = await runInto('out', sink(), 'keys', 'issue');
  expect(code).toBe(1);
  expect(told).toContain('The result could not be written to standard output: ');
});

test('a reader that takes only the beginning of a large result is no failure', async () => {
  const folder = await temporaryFolder();
  expect((await runCli(folder, 'accounts', 'open', 'Large')).code).toBe(0);
  const store = await openSqliteEventStore({ folder });
  const { position } = await store.append(newStream(), 'no_stream', [newEvent()]);
  await store.append(newStream(), 'no_stream', [newEvent({ input: 'x'.repeat(500_000) })]);
  await store.close();
  const args = ['services/cli/main.ts', 'events', 'tail', '--after', position];
  const child = spawn(process.execPath, args, {
    env: { ...plainEnvironment(), DATA_DIR: folder, LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [text, told] = ['', ''];
  child.stderr.setEncoding('utf8').on('data', (more: string) => (told += more));
  const ended = once(child, 'close');
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more;
    if (text.includes('xxx')) child.stdout.destroy();
  });
  expect([(await ended)[0], told]).toEqual([0, '']);
  expect(text.length).toBeLessThan(500_000);
  await rm(folder, { recursive: true });
});

test('a reader that has seen enough is no failure', async () => {
  const child = spawn(process.execPath, ['services/cli/main.ts', 'events', 'tail'], {
    env: { ...plainEnvironment(), DATA_DIR: data, LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let told = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (told += text));
  const ended = once(child, 'close');
  await once(child.stdout, 'data');
  child.stdout.destroy();
  await runInto('err', fullDisk(), 'keys', 'issue');
  expect((await ended)[0]).toBe(0);
  expect(told).toBe('');
});

test('progress that can not be written changes nothing', async () => {
  const { code, told } = await runInto('err', fullDisk(), 'audit', 'verify');
  expect(code).toBe(0);
  expect(told).toContain('Every event fits its hash chain.');
});
