/**
 * The commands of the pages, pasted one after the other, succeed and print what the pages show. Each
 * page continues the first requests of README on a new service.
 */
import { execFile } from 'node:child_process';
import { mkdir, readdir, symlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { commandsOf, hasShape, type CodeBlock } from '../../support/docs/commands.ts';
import { projectFiles, root, textOf } from '../../support/docs/projectFiles.ts';
import { freePort } from '../../support/processes/freePort.ts';
import { plainEnvironment } from '../../support/processes/plainEnvironment.ts';
import { openTerminal } from '../../support/processes/terminal.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

/** No warnings of Node's, and no progress of npm's. */
const QUIET = { NODE_NO_WARNINGS: '1', NPM_CONFIG_PROGRESS: 'false' };

const FAILED = '"success":false';
const [start, ...first] = commandsOf(textOf('README.md'));

/** A folder that looks like a clone in which nothing was started yet. */
async function freshClone(folder: string): Promise<string> {
  const clone = join(folder, 'turnlog');
  await mkdir(clone);
  const names = (await readdir(root)).filter((name) => name !== 'data');
  await Promise.all(names.map((name) => symlink(join(root, name), join(clone, name))));
  return clone;
}

/** Runs `work` while the command by which README starts the service runs in a terminal. */
async function whileItRuns<Result>(
  folder: string,
  env: Record<string, string>,
  work: (printed: string) => Promise<Result>,
): Promise<Result> {
  const terminal = openTerminal(['sh', '-c', start!.text], env, folder);
  try {
    await terminal.prints(/Try it[^]*?curl [^\n]*\n/);
    return await work(terminal.printed());
  } finally {
    terminal.type('\x03');
    await terminal.exited;
  }
}

/** Pastes the blocks into one shell, whose output is a pipe, because `tee` opens no socket. Returns what each printed, up to the first that failed. */
async function paste(
  blocks: readonly CodeBlock[],
  port: number,
  options: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<string[]> {
  const script = blocks
    .map(
      ({ text }) => `${text.replaceAll(/(localhost|127\.0\.0\.1):3000/g, `$1:${port}`)}\necho @@`,
    )
    .join('\n');
  const run = promisify(execFile)('sh', ['-c', `{ set -e\n${script}\n} 2>&1 | cat`], options);
  const { stdout } = await run.catch((error: unknown) => error as { stdout: string });
  return stdout.split('@@\n');
}

const pages = projectFiles()
  .filter((path) => path.endsWith('.md') && !path.startsWith('test/'))
  .filter((path) => commandsOf(textOf(path)).length > 0);

test.each(pages)(
  '%s',
  async (page) => {
    const folder = await temporaryFolder();
    try {
      const cwd = await freshClone(folder);
      const port = await freePort();
      const path = `${join(root, 'node_modules/.bin')}:${process.env['PATH']}`;
      const env = { PATH: path, PORT: String(port), LOG_LEVEL: 'error', ...QUIET };
      const own = page === 'README.md' ? [] : commandsOf(textOf(page));
      const blocks = [...first, ...own];
      const printed = await whileItRuns(cwd, env, async (banner) => [
        banner.replaceAll(`:${port}`, ':3000'),
        ...(await paste(blocks, port, { cwd, env: { ...plainEnvironment(), ...env } })),
      ]);
      const differing = [start!, ...blocks].flatMap(({ text, output = '' }, index) => {
        const actual = printed[index];
        const fails =
          index >= printed.length - 1 || (actual!.includes(FAILED) && !output.includes(FAILED));
        const differs = output !== '' && !hasShape(actual ?? '', output);
        return fails || differs ? [{ command: text, documented: output, printed: actual }] : [];
      });
      expect(differing.slice(0, 3)).toEqual([]);
      expect(printed).toHaveLength(blocks.length + 2);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
  240_000,
);
