import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Suites that run together: those of a configuration whose path begins so, or all of them. */
export interface Suites {
  config: `test/jest.${'' | 'servers.' | 'slow.' | 'faults.'}config.json`;
  path?: string;
  limitMs: number;
}

const ONE_MS = 600_000;
const MANY_MS = 2_400_000;

/** What `npm test` runs first, then the slower suites; without the faults. */
export const ALL: readonly Suites[] = [
  { config: 'test/jest.config.json', limitMs: MANY_MS },
  { config: 'test/jest.slow.config.json', limitMs: MANY_MS },
  { config: 'test/jest.servers.config.json', limitMs: MANY_MS },
];
export const FAULTS: Suites = { config: 'test/jest.faults.config.json', limitMs: 2 * MANY_MS };

/** The suites at a path. */
export function suitesAt(path: string): Suites {
  const folder = /^test\/(servers|slow|faults)\//.exec(path)?.[1] as
    'servers' | 'slow' | 'faults' | undefined;
  return {
    config: folder ? `test/jest.${folder}.config.json` : 'test/jest.config.json',
    path,
    limitMs: folder === 'faults' ? MANY_MS : ONE_MS,
  };
}

/**
 * The first test that failed, and its file; the file is unknown where the time was over before any
 * test failed.
 */
export interface Failure {
  test: string;
  file: string | undefined;
}

/** Whatever the tests of a killed run have started is in its process group. */
function endGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL');
  } catch {
    // All of it has ended already.
  }
}

/**
 * Runs suites in a tree until one fails. Resolves with the first failure, undefined where all
 * passed. Ends what takes longer than its limit, which is a failure too. Errors: the signal's
 * reason.
 */
export async function run(
  tree: string,
  { config, path, limitMs }: Suites,
  signal: AbortSignal,
): Promise<Failure | undefined> {
  const jest = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--config', config];
  const child = spawn(process.execPath, [...jest, '--bail', ...(path ? [path] : [])], {
    cwd: tree,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined },
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  let late = false;
  const end = (): void => endGroup(child.pid);
  const limit = setTimeout(() => {
    late = true;
    end();
  }, limitMs);
  signal.addEventListener('abort', end);
  const closed = once(child, 'close');
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    end();
    await closed;
    signal.throwIfAborted();
    return code === 0 ? undefined : failureIn(said, late, path);
  } finally {
    clearTimeout(limit);
    signal.removeEventListener('abort', end);
  }
}

function failureIn(said: string, late: boolean, path: string | undefined): Failure {
  const failed = /^FAIL (\S+)/m.exec(said);
  const test = failed && /^ +● (?!Console)(.+)$/m.exec(said.slice(failed.index))?.[1];
  if (test) return { test, file: failed[1] };
  if (late) return { test: 'the time limit', file: path };
  throw new Error(`The tests could not be run:\n${said.slice(-2_000)}`);
}
