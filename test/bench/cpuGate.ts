/**
 * Fails when a run takes over a tenth more CPU time than at the previous commit, or at the one that
 * `BENCH_BASE` names: `node test/bench/cpuGate.ts`. Both are measured in the same minutes. Without
 * that commit it fails with CI=true.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compareWith } from './comparedRows.ts';
import { ROOT } from './process.ts';
import { printReport, type Result } from './report.ts';

const MOST_GROWTH = 1.1;
/** Files that decide about the CPU time of a run. */
const PRODUCT = ['services', 'shared', 'infra', 'package-lock.json'];

const base = process.env['BENCH_BASE'] ?? 'HEAD^';
const git = (...args: readonly string[]): string =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
const say = (text: string): void => void process.stdout.write(`${text}\n`);

function hasCommit(): boolean {
  try {
    return git('rev-parse', '--verify', `${base}^{commit}`) !== '';
  } catch {
    return false;
  }
}

const hasChanged = (...paths: readonly string[]): boolean =>
  git('diff', '--name-only', base, '--', ...paths) !== '';

/** The base in a folder beside this checkout's, with this checkout's packages if they are the same. */
function checkOut(folder: string): void {
  git('worktree', 'add', '--detach', folder, base);
  if (hasChanged('package-lock.json')) execFileSync('npm', ['ci', '--silent'], { cwd: folder });
  else symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
}

async function compareWithBase(): Promise<void> {
  const folder = join(mkdtempSync(join(tmpdir(), 'turnlog-bench-base-')), 'checkout');
  const results: Result[] = [];
  try {
    checkOut(folder);
    await compareWith(folder, ['cpu'], (result) => results.push(result));
  } finally {
    rmSync(join(folder, '..'), { recursive: true, force: true });
    git('worktree', 'prune');
  }
  printReport(results, base);
  const [{ ratio, range }] = results as [Required<Result>];
  const growth = 1 / ratio;
  // Noise of the machine goes in both directions: a growth shows in every pair of rounds.
  const isCertain = range[1] < 1;
  if (growth <= MOST_GROWTH || !isCertain) return;
  say(
    `A run takes ${growth.toFixed(2)} × the CPU time of ${base}; at most ${MOST_GROWTH} × is allowed.`,
  );
  process.exitCode = 1;
}

if (!hasCommit()) {
  say(`skipped: the repository has no ${base}. Fetch it, or name a commit in BENCH_BASE.`);
  if (process.env['CI'] === 'true') process.exitCode = 1;
} else if (hasChanged(...PRODUCT)) await compareWithBase();
else say(`The product is that of ${base}: its CPU time is not measured.`);
