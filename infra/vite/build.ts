// Builds a workspace with Vite: `node infra/vite/build.ts [folder]`, by default services/console. It
// installs the packages that are missing, builds into a temporary folder, compresses the files, and
// replaces the built files at the end. It prints its progress to standard output, and why it failed
// to standard error. With --with-parent it ends, with all that it started, when its parent ends.
// It imports no package, because nothing may be installed yet.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';
import { extname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify, stripVTControlCharacters } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { FINGERPRINT_FILE, fingerprintOf, foldersOf, isBuilt } from './fingerprint.ts';

const ENSURE_INSTALLED = fileURLToPath(new URL('../local/ensure-installed.mjs', import.meta.url));
const CONSOLE = fileURLToPath(new URL('../../services/console/', import.meta.url));
const SQLITE_BUSY = 5;
const LOCK_POLL_MS = 500;
const LOCK_WAIT_MS = 10 * 60_000;
/** Characters of the output of a step that are kept, with those that color it. */
const KEPT_CHARACTERS = 30_000;
/** Characters of the output of a failed step that are shown. */
const SHOWN_CHARACTERS = 3_000;
const STACK_LINE = /^ +at .*\n?/gm;
/** Smaller files, and files of other types, are sent as they are. */
const COMPRESSED_FROM_BYTES = 1_024;
const COMPRESSED_TYPES = new Set(['.css', '.html', '.js', '.json', '.svg', '.txt']);

const say = (line: string): boolean => process.stdout.write(`${line}\n`);

/**
 * Keeps processes that use the same folder from building it at once. The lock is an open transaction,
 * which the operating system ends with the process. Throws when another build takes too long.
 */
async function acquireLock(file: string): Promise<DatabaseSync> {
  for (let waited = 0; ; waited += LOCK_POLL_MS) {
    const lock = new DatabaseSync(file, { timeout: 0 });
    try {
      lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
      return lock;
    } catch (error) {
      lock.close();
      const { errcode } = error as { errcode?: number };
      if (errcode !== SQLITE_BUSY) throw error;
      if (waited >= LOCK_WAIT_MS)
        throw new Error(
          `Another process has been building the console for ${waited / 60_000} minutes.`,
          {
            cause: error,
          },
        );
      if (waited === 0) say('Waiting for another process that builds it…');
      await sleep(LOCK_POLL_MS);
    }
  }
}

interface Step {
  cwd: string;
  args: readonly string[];
  /** The failure, and the remedy. */
  failure: string;
}

/** Runs a program of Node. Throws the failure, with the end of what the program printed. */
async function runStep({ cwd, args, failure }: Step): Promise<void> {
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      process.stdout.write(text);
      printed = (printed + text).slice(-KEPT_CHARACTERS);
    });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code === 0) return;
  const end = stripVTControlCharacters(printed).replaceAll(STACK_LINE, '').trim();
  throw new Error(`${failure}\n\n${end.slice(-SHOWN_CHARACTERS)}`);
}

async function compress(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter(
    (entry) => entry.isFile() && COMPRESSED_TYPES.has(extname(entry.name)),
  );
  for (const { parentPath, name } of files) {
    const path = join(parentPath, name);
    const content = await readFile(path);
    if (content.length < COMPRESSED_FROM_BYTES) continue;
    await writeFile(`${path}.br`, await promisify(brotliCompress)(content));
    await writeFile(`${path}.gz`, await promisify(gzip)(content, { level: 9 }));
  }
}

/** Vite's configurations: the first is that of the pages, others add files to its output. */
const configsIn = (sources: string): string[] =>
  readdirSync(sources)
    .filter((name) => /^vite(?:\.\w+)?\.config\.ts$/.test(name))
    .toSorted((one, other) => one.length - other.length);

const outputIn = (temporary: string): string => join(temporary, 'output');

async function buildLocked(sources: string): Promise<void> {
  const { built, temporary } = foldersOf(sources);
  const [output, replaced] = [outputIn(temporary), join(temporary, 'replaced')];
  for (const leftover of [output, replaced, join(sources, 'node_modules.installing')])
    await rm(leftover, { recursive: true, force: true });
  const fingerprint = await fingerprintOf(sources);
  say('Installing the packages of the console…');
  await runStep({
    cwd: sources,
    args: [ENSURE_INSTALLED, '--production', `--folder=${sources}`],
    failure:
      'The packages of the console could not be installed. Check that this machine reaches the npm registry, and that the disk has 400 MB left.',
  });
  say('Building the console…');
  for (const config of configsIn(sources))
    await runStep({
      cwd: sources,
      args: ['node_modules/vite/bin/vite.js', 'build', '--config', config, '--outDir', output],
      failure:
        'Vite could not build the console. Check that the disk and the memory of this machine are not full, and that its sources are those of a release.',
    });
  say('Compressing the files…');
  await compress(output);
  await writeFile(join(output, FINGERPRINT_FILE), fingerprint);
  if (existsSync(built)) await rename(built, replaced);
  await rename(output, built);
  await rm(replaced, { recursive: true, force: true });
}

async function build(sources: string): Promise<void> {
  if (!existsSync(join(sources, 'package.json')))
    throw new Error(`The sources of the console are missing: there is no ${sources}/package.json.`);
  const { temporary } = foldersOf(sources);
  mkdirSync(temporary, { recursive: true });
  const lock = await acquireLock(join(temporary, 'lock'));
  try {
    if (!(await isBuilt(sources))) await buildLocked(sources);
  } finally {
    // The leftovers of a failed build may fill the disk.
    await rm(outputIn(temporary), { recursive: true, force: true });
    lock.close();
  }
}

/** Why a build failed, and what to try. Errors of the file system name only what failed. */
function explain(error: Error & { code?: string }, sources: string): string {
  if (error.code === undefined) return error.message;
  return `The console could not be built in ${sources}. Check that the disk has 400 MB left and that the folder can be written. Where it can't be, as in a container, build the console when the image is made: npm run console:build.\n\n${error.message}`;
}

const endGroup = (): boolean => process.kill(-process.pid, 'SIGKILL');

const { values, positionals } = parseArgs({
  options: { 'with-parent': { type: 'boolean', default: false } },
  allowPositionals: true,
});
if (values['with-parent']) {
  process.stdin.on('end', endGroup).resume();
  // Writing to a parent that has just ended can fail before standard input ends. Without a listener
  // that would end this process alone, and leave Vite running.
  for (const stream of [process.stdin, process.stdout, process.stderr])
    stream.on('error', endGroup);
}
setPriority(constants.priority.PRIORITY_LOW);
const folder = resolve(positionals[0] ?? CONSOLE);
try {
  await build(folder);
} catch (error) {
  process.stderr.write(`${explain(error as Error, folder)}\n`);
  process.exitCode = 1;
}
// Standard input may still be open.
process.stdin.destroy();
