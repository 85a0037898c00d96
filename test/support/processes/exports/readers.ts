import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { run } from '../../../../infra/local/kafka/jars.ts';
import { root, textOf } from '../../docs/projectFiles.ts';
import { plainEnvironment } from '../plainEnvironment.ts';
import { FETCH_LIMIT_MS, installed, pythonWith } from '../recipes/installed.ts';
import { temporaryFolder } from '../../stores/sqlite/sqliteEventStore.ts';

const REQUIREMENTS = 'test/support/processes/exports/requirements.txt';
const HARBOR = 'test/support/processes/exports/harbor.txt';
const PROGRAM = join(root, 'test/support/processes/exports/read.py');
const MOST_BYTES = 64 * 1_024 * 1_024;

/** Makes a file of each log, in the folder of session.jsonl, as docs/exports.md says. */
const RECIPE = textOf('docs/exports.md')
  .split('\n')
  .find((line) => line.startsWith('split ') && line.includes('_turnlog_'))!;

/** What the readers of others understood, by format. */
export type Understood = Record<'openai-chat' | 'otel' | 'inspect' | 'atif', any[]>;

/** Reads exports, by format, with the programs that they are made for. Rejects where one refuses. */
export type ReadExports = (texts: Record<keyof Understood, string>) => Promise<Understood>;

/**
 * Fetches the readers that are not there yet. Of Harbor only the models and the validator of its
 * format are used: they need none of its many dependencies, and no newer Python.
 */
export async function exportReaders(): Promise<ReadExports> {
  const python = await pythonWith(REQUIREMENTS, 'exports-python');
  const harbor = await installed(HARBOR, 'exports-harbor', (partial) =>
    run(
      python,
      ['-m', 'pip', 'install', '-q', '--no-deps', '--ignore-requires-python'].concat(
        ['--target', partial],
        ['-r', join(root, HARBOR)],
      ),
      FETCH_LIMIT_MS,
    ),
  );
  return async (texts) => {
    const folder = await temporaryFolder();
    try {
      for (const [format, text] of Object.entries(texts))
        await writeFile(join(folder, `${format}.jsonl`), text);
      const logs = join(folder, 'logs');
      await mkdir(logs);
      await writeFile(join(logs, 'session.jsonl'), texts.inspect);
      await promisify(execFile)('bash', ['-c', RECIPE], { cwd: logs });
      const { stdout } = await promisify(execFile)(python, [PROGRAM, folder], {
        cwd: folder,
        env: { ...plainEnvironment(), PYTHONPATH: harbor, PYTHONUTF8: '1' },
        maxBuffer: MOST_BYTES,
      });
      return JSON.parse(stdout) as Understood;
    } finally {
      await rm(folder, { recursive: true });
    }
  };
}
