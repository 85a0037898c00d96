/**
 * Breaks production code in one place after the other (mutations.ts) and counts what the tests
 * notice. Works on a copy of the tree. A mutation is tried on its likely suites first, then on all
 * of `npm test`, `test:slow` and `test:servers`. What failed is run once more without the mutation: a
 * suite that fails then, too, has noticed nothing.
 *
 *   npm run test:mutations -- [--only 3,7] [--from 5] [--quick] [--faults] [--tree <folder>] [--list <file>]
 *
 * `--only` and `--from` name mutations by their numbers, to go on after an interruption. `--quick`
 * tries the likely suites only, `--faults` the fault suites, too, where nothing else has noticed.
 * `--tree` and `--list` take another checkout, with a list that fits it. The exit code is 0 where
 * everything was noticed.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type { Mutation } from './mutations.ts';
import { ALL, FAULTS, run, suitesAt, type Failure } from './suites.ts';
import { broken, compilerSays, copyTree } from './tree.ts';

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    from: { type: 'string', default: '1' },
    quick: { type: 'boolean', default: false },
    faults: { type: 'boolean', default: false },
    tree: { type: 'string', default: fileURLToPath(new URL('../../', import.meta.url)) },
    list: { type: 'string', default: fileURLToPath(new URL('./mutations.ts', import.meta.url)) },
  },
});

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/**
 * The mutations to try, with their numbers. Errors: a plain Error where one of the list does not
 * fit the tree.
 */
async function chosen(): Promise<(Mutation & { number: number })[]> {
  const list = (await import(pathToFileURL(resolve(options.list)).href)) as {
    mutations: readonly Mutation[];
  };
  for (const mutation of list.mutations) broken(options.tree, mutation);
  const only = options.only?.split(',').map(Number);
  return list.mutations
    .map((mutation, index) => ({ ...mutation, number: index + 1 }))
    .filter(({ number }) => only?.includes(number) ?? number >= Number(options.from));
}

/** Which test notices, in a copy of the tree. */
function createTrial(folder: string, signal: AbortSignal) {
  /** Suites that failed with a mutation: whether they pass without one. */
  const sound = new Map<string, boolean>();

  async function isSound(file: string): Promise<boolean> {
    const known = sound.get(file) ?? (await run(folder, suitesAt(file), signal)) === undefined;
    sound.set(file, known);
    return known;
  }

  async function firstFailure({ likely }: Mutation): Promise<Failure | undefined> {
    const all = options.quick ? [] : options.faults ? [...ALL, FAULTS] : ALL;
    for (const suites of [...likely.map(suitesAt), ...all]) {
      const failure = await run(folder, suites, signal);
      if (failure) return failure;
    }
    return undefined;
  }

  return async (mutation: Mutation): Promise<{ caught: boolean; verdict: string }> => {
    const file = join(folder, mutation.file);
    const original = readFileSync(file, 'utf8');
    let failure: Failure | undefined;
    try {
      writeFileSync(file, broken(folder, mutation));
      const refusal = compilerSays(folder);
      if (refusal !== undefined) return { caught: false, verdict: `does not compile: ${refusal}` };
      failure = await firstFailure(mutation);
    } finally {
      writeFileSync(file, original);
    }
    if (!failure) return { caught: false, verdict: 'survived' };
    const where = `${failure.test} (${failure.file ?? 'all suites'})`;
    if (failure.file !== undefined && !(await isSound(failure.file)))
      return { caught: false, verdict: `not known: fails without it, too: ${where}` };
    return { caught: true, verdict: `caught by ${where}` };
  };
}

const interrupted = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort());
const mutations = await chosen();
const { folder, remove } = copyTree(options.tree);
try {
  const refusal = compilerSays(folder);
  if (refusal !== undefined) throw new Error(`The tree does not compile:\n${refusal}`);
  const attempt = createTrial(folder, interrupted.signal);
  let count = 0;
  for (const mutation of mutations) {
    const began = performance.now();
    const { caught, verdict } = await attempt(mutation);
    if (caught) count += 1;
    const seconds = Math.round((performance.now() - began) / 1_000);
    say(`${mutation.number}. ${mutation.name}: ${verdict}, ${seconds} s`);
  }
  say(`${count} of ${mutations.length} caught`);
  if (count < mutations.length) process.exitCode = 1;
} catch (error) {
  if (error !== interrupted.signal.reason) throw error;
  process.exitCode = 130;
} finally {
  remove();
}
