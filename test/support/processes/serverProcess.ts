import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { plainEnvironment } from './plainEnvironment.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * By default a write that the read models are late with is answered after 2 s, which a busy machine
 * may take: tests read what was answered.
 */
export const PATIENT = { VISIBILITY_WAIT_MS: '20000' };

const SHIFTED = new URL('./shiftedClock.mjs', import.meta.url);

/** What makes a process's clock go wrong, by so many milliseconds; its timers go right. */
export const withClockAhead = (ms: number): Record<string, string> => ({
  NODE_OPTIONS: `--import ${SHIFTED.href}`,
  TEST_CLOCK_AHEAD_MS: String(ms),
});

/** A service under attack may write more than a test can hold. */
const KEPT = 64_000_000;

export interface ServerProcess {
  pid: number;
  /** Resolves with its address once it has printed it; rejects when it ended before. */
  ready: Promise<string>;
  /** Resolves with the exit code, null after a kill. */
  exited: Promise<number | null>;
  /** What it wrote to standard error: all of it, up to some 64 MB. */
  errors: () => string;
  /** How much it wrote there, in characters. */
  logged: () => number;
  kill(signal: NodeJS.Signals): void;
}

/** A command that starts Node with this limit of open files. */
export const withOpenFiles = (limit: number): readonly string[] => [
  'sh',
  '-c',
  `ulimit -n ${limit} && exec "$0" "$@"`,
  process.execPath,
];

/**
 * The server as a real process, on a free port, with the arguments of its command; of the project
 * in another folder, or by another command than Node's own, if one is given.
 */
export function startServerProcess(
  env: Record<string, string>,
  args: readonly string[] = [],
  folder = root,
  [command, ...before]: readonly string[] = [process.execPath],
): ServerProcess {
  const child = spawn(command!, [...before, 'services/main.ts', ...args], {
    cwd: folder,
    env: {
      ...plainEnvironment(),
      PORT: '0',
      ...PATIENT,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  let logged = 0;
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    logged += text.length;
    if (errors.length < KEPT) errors += text;
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const address = /listens on (http[^\s"]+)/.exec(line)?.[1];
      if (address !== undefined) resolve(address);
    });
    void exited.then((code) => reject(new Error(`the server ended with code ${code}: ${errors}`)));
  });
  // A test that kills it while it starts waits for `exited` alone.
  ready.catch(() => undefined);
  return {
    pid: child.pid!,
    ready,
    exited,
    errors: () => errors,
    logged: () => logged,
    kill: (signal) => void child.kill(signal),
  };
}
