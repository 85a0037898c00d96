import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../../../../infra/local/kafka/jars.ts';
import { retry } from '../../../../shared/lib/time/backoff.ts';
import { root } from '../../docs/projectFiles.ts';

const CACHE = join(root, 'node_modules/.cache/turnlog');
const FETCHES = 3;
/** A registry may have fallen silent. */
export const FETCH_LIMIT_MS = 300_000;
const PAUSES = { firstMs: 2_000, longestMs: 2_000 };

/**
 * A folder with what a file asks for, filled once for each content of the file. It is renamed when
 * it is whole, and a fetch that fails is repeated.
 */
export async function installed(
  file: string,
  name: string,
  fill: (folder: string) => Promise<unknown>,
): Promise<string> {
  const digest = createHash('sha256').update(await readFile(join(root, file)));
  const folder = join(CACHE, `${name}-${digest.digest('hex').slice(0, 16)}`);
  const fetchOnce = async (): Promise<void> => {
    if (existsSync(folder)) return;
    const partial = `${folder}.${process.pid}`;
    try {
      await mkdir(partial, { recursive: true });
      await fill(partial);
      await rename(partial, folder).catch((error: unknown) => {
        // Another process, which has fetched at the same time, may have been first.
        if (!existsSync(folder)) throw error;
      });
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
  };
  await retry(fetchOnce, { pauses: PAUSES, shouldRetry: (_error, failures) => failures < FETCHES });
  return folder;
}

/** A Python with what a file of requirements asks for; its path, beside which its programs are. */
export async function pythonWith(requirements: string, name: string): Promise<string> {
  const folder = await installed(requirements, name, async (partial) => {
    await run('python3', ['-m', 'venv', partial], FETCH_LIMIT_MS);
    const install = ['-m', 'pip', 'install', '-q', '-r', join(root, requirements)];
    await run(join(partial, 'bin/python'), install, FETCH_LIMIT_MS);
  });
  return join(folder, 'bin/python');
}

/** A Python with what the recipes in Python import. */
export const pythonOfRecipes = (): Promise<string> =>
  pythonWith('examples/python/requirements.txt', 'python');

/** The class path of the recipe in Java. */
export async function jarsOfRecipe(): Promise<string> {
  const pom = 'examples/java/pom.xml';
  await run('java', ['-version']);
  const folder = await installed(pom, 'java', (partial) =>
    run(
      'mvn',
      // -U, because Maven remembers for a day what it could not find.
      ['-B', '-q', '-U', '-f', join(root, pom), 'dependency:copy-dependencies'].concat(
        `-DoutputDirectory=${partial}`,
      ),
      FETCH_LIMIT_MS,
    ),
  );
  return `${folder}/*`;
}

/**
 * What `get` gives; where it can't be had, one line that says why and what to do, and with CI=true
 * a failure.
 */
export async function orSkip<Thing>(
  get: () => Promise<Thing>,
  howToEnable: string,
): Promise<Thing | undefined> {
  try {
    return await get();
  } catch (error) {
    const why = `Tests are skipped (${(error as Error).message.split('\n')[0] ?? ''}). ${howToEnable}`;
    if (process.env['CI'] === 'true') throw new Error(why, { cause: error });
    process.stderr.write(`${why}\n`);
    return undefined;
  }
}
