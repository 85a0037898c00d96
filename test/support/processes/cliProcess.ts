import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { plainEnvironment } from './plainEnvironment.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

export interface CliResult {
  /** Null after a signal. */
  code: number | null;
  /** Standard output and standard error. */
  out: string;
  err: string;
}

interface CliProcess {
  kill(signal: NodeJS.Signals): void;
  /** Resolves with standard output once it satisfies. */
  printed(satisfies: (out: string) => boolean): Promise<string>;
  /** The same of standard error. */
  told(satisfies: (err: string) => boolean): Promise<string>;
  ended: Promise<CliResult>;
}

async function until(
  stream: Readable,
  text: () => string,
  satisfies: (text: string) => boolean,
): Promise<string> {
  while (!satisfies(text())) {
    if (stream.readableEnded) throw new Error(`it ended, having said: ${text()}`);
    await Promise.race([once(stream, 'data'), once(stream, 'end')]);
  }
  return text();
}

/** An operator command as a real process, on the stores that the environment names. */
export function startCliOn(env: Record<string, string>, ...args: string[]): CliProcess {
  const child: ChildProcessByStdio<null, Readable, Readable> = spawn(
    process.execPath,
    ['services/cli/main.ts', ...args],
    {
      cwd: root,
      env: { ...plainEnvironment(), LOG_LEVEL: 'warn', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  return {
    kill: (signal) => void child.kill(signal),
    printed: (satisfies) => until(child.stdout, () => out, satisfies),
    told: (satisfies) => until(child.stderr, () => err, satisfies),
    ended: once(child, 'close').then(([code]) => ({ code: code as number | null, out, err })),
  };
}

/** The same on a data folder. */
export const startCli = (folder: string, ...args: string[]): CliProcess =>
  startCliOn({ DATA_DIR: folder }, ...args);

export const runCli = (folder: string, ...args: string[]): Promise<CliResult> =>
  startCli(folder, ...args).ended;
