import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { run } from '../../../../infra/local/kafka/jars.ts';
import { root } from '../../docs/projectFiles.ts';
import { plainEnvironment } from '../plainEnvironment.ts';
import { FETCH_LIMIT_MS, installed, pythonWith } from '../recipes/installed.ts';

const MANIFEST = 'test/openapi/package.json';

/** The folder of the programs that are asked about the document, from npm and from PyPI. */
export interface Tools {
  /** Has `node_modules`. */
  node: string;
  /** Has `python`. */
  python: string;
}

/** Fetches what is not there yet. */
export async function openApiTools(): Promise<Tools> {
  const python = await pythonWith('test/openapi/requirements.txt', 'openapi-python');
  const node = await installed(MANIFEST, 'openapi-node', async (partial) => {
    await copyFile(join(root, MANIFEST), join(partial, 'package.json'));
    const quietly = ['--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts'];
    await run('npm', ['install', '--prefix', partial, ...quietly], FETCH_LIMIT_MS);
  });
  return { node, python: dirname(python) };
}

export interface Ran {
  code: number | null;
  /** What it wrote to standard output and standard error, as it came. */
  output: string;
}

/**
 * Runs a command in a folder to its end: a program and its arguments, parted by spaces, without
 * quotes.
 */
export async function runTool(
  { node, python }: Tools,
  folder: string,
  command: string,
): Promise<Ran> {
  const env = plainEnvironment();
  const [program = '', ...args] = command.split(' ');
  const child = spawn(program, args, {
    cwd: folder,
    env: {
      ...env,
      PATH: [join(node, 'node_modules/.bin'), python, dirname(process.execPath), env['PATH']].join(
        ':',
      ),
      REDOCLY_TELEMETRY: 'off',
      REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
      NO_COLOR: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}
