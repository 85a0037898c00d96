import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const SCRIPTS = ['infra/local/run.sh', 'infra/local/ensure-installed.mjs'];
/** Stands in for npm: says that it was called, and installs once it is told to. */
const NPM = `
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
const args = process.argv.slice(2, process.argv.indexOf('--ignore-scripts'));
appendFileSync('calls', args.join(' ') + '\\n');
const install = () => {
  if (!existsSync('go')) return void setTimeout(install, 10);
  mkdirSync('node_modules', { recursive: true });
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  if (args.includes('--omit=dev')) delete packages['node_modules/tool'];
  writeFileSync('node_modules/.package-lock.json', JSON.stringify({ packages }));
};
install();
`;

const LOCKED = {
  '': {},
  'node_modules/a': { version: '1.0.0' },
  'node_modules/tool': { version: '1.0.0', dev: true },
};

/** A clone in which nothing is installed. */
let clone: string;
const file = (name: string): string => join(clone, name);
const calls = async (): Promise<string[]> =>
  existsSync(file('calls')) ? (await readFile(file('calls'), 'utf8')).split('\n').slice(0, -1) : [];
/** Runs a program of Node as an npm script does. */
const runScript = (program = '', ...options: string[]): ChildProcess =>
  spawn(file('infra/local/run.sh'), [...options, 'node', '-e', program], {
    cwd: clone,
    env: { ...process.env, NODE_OPTIONS: '', npm_execpath: file('npm.mjs') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });

beforeEach(async () => {
  clone = await temporaryFolder();
  await mkdir(file('infra/local'), { recursive: true });
  for (const script of SCRIPTS)
    await cp(fileURLToPath(new URL(`../../../${script}`, import.meta.url)), file(script));
  await writeFile(file('package-lock.json'), JSON.stringify({ packages: LOCKED }));
  await writeFile(file('npm.mjs'), NPM);
});
afterEach(() => rm(clone, { recursive: true }));

test('scripts that are started at once on a fresh clone install once, and those that come later not at all', async () => {
  const both = [runScript(), runScript()].map((script) => once(script, 'exit'));
  await eventually(calls, (made) => made.length > 0);
  await writeFile(file('go'), '');
  expect(await Promise.all(both)).toEqual([
    [0, null],
    [0, null],
  ]);
  expect(await once(runScript(), 'exit')).toEqual([0, null]);
  expect(await calls()).toEqual(['ci']);
});

test.each(['SIGINT', 'SIGTERM'] as const)(
  'an install that is ended by %s does not keep the next one waiting',
  async (signal) => {
    const script = runScript('console.log("started")');
    const output: unknown[] = [];
    script.stdout!.on('data', (chunk) => output.push(chunk));
    const ended = once(script, 'exit');
    await eventually(calls, (made) => made.length > 0);
    script.kill(signal);
    expect(await ended).toEqual([1, null]);
    expect(output).toEqual([]);
    await writeFile(file('go'), '');
    expect(await once(runScript(), 'exit')).toEqual([0, null]);
    expect(await calls()).toEqual(['ci', 'ci']);
  },
);

test('the command takes the place of the script: signals reach it, and its exit code is kept', async () => {
  await writeFile(file('go'), '');
  const script = runScript(
    'process.on("SIGTERM", () => process.exit(7)); setInterval(() => {}, 60_000); console.log(process.pid)',
  );
  const ended = once(script, 'exit');
  const [output] = (await once(script.stdout!, 'data')) as [Buffer];
  expect(Number(output)).toBe(script.pid);
  script.kill('SIGTERM');
  expect(await ended).toEqual([7, null]);
});

test('running the service installs no development packages and no second Node; a test adds them to what is there', async () => {
  await writeFile(file('go'), '');
  for (const options of [['--production'], ['--production'], [], [], ['--production']])
    expect(await once(runScript('', ...options), 'exit')).toEqual([0, null]);
  expect(await calls()).toEqual(['ci --omit=dev --omit=optional', 'install --no-save']);
});
