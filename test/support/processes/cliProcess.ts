/** Operator commands: in this process, or each as a process where that is the subject of a test. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { CommandProcess } from '../../../services/cli/context.ts';
import { interruptedError } from '../../../services/cli/failure.ts';
import { runProgram } from '../../../services/cli/program.ts';
import { plainEnvironment } from './plainEnvironment.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

export interface CliResult {
  /** Null after a signal that the command does not handle. */
  code: number | null;
  /** Standard output and standard error. */
  out: string;
  err: string;
}

interface RunningCli {
  kill(signal: NodeJS.Signals): void;
  /** Resolves with standard output once it satisfies. */
  printed(satisfies: (out: string) => boolean): Promise<string>;
  /** The same of standard error. */
  told(satisfies: (err: string) => boolean): Promise<string>;
  ended: Promise<CliResult>;
}

/** Output as far as a command has written it. */
function recordOutput() {
  let text = '';
  let isEnded = false;
  const readers = new Set<() => void>();
  const notify = (): void => readers.forEach((read) => read());
  return {
    text: () => text,
    write(chunk: string): void {
      text += chunk;
      notify();
    },
    end(): void {
      isEnded = true;
      notify();
    },
    until: (satisfies: (text: string) => boolean): Promise<string> =>
      new Promise((resolve, reject) => {
        function read(): void {
          if (satisfies(text)) resolve(text);
          else if (isEnded) reject(new Error(`the command ended; its output: ${text}`));
          else return void readers.add(read);
          readers.delete(read);
        }
        read();
      }),
  };
}

const environment = (env: Record<string, string>): Record<string, string | undefined> => ({
  ...plainEnvironment(),
  LOG_LEVEL: 'warn',
  ...env,
});

function running(
  [out, err]: readonly [ReturnType<typeof recordOutput>, ReturnType<typeof recordOutput>],
  kill: RunningCli['kill'],
  code: Promise<number | null>,
): RunningCli {
  return {
    kill,
    printed: out.until,
    told: err.until,
    ended: code.then((ended) => {
      for (const output of [out, err]) output.end();
      return { code: ended, out: out.text(), err: err.text() };
    }),
  };
}

/** An operator command in this process, with these options; a signal interrupts it. */
export function startCliWith(env: Record<string, string>, ...args: string[]): RunningCli {
  const [out, err] = [recordOutput(), recordOutput()];
  const target: CommandProcess = { env: environment(env), stdout: out, stderr: err };
  const stop = new AbortController();
  const code = runProgram(args, target, stop.signal).then(() => Number(target.exitCode ?? 0));
  return running([out, err], () => stop.abort(interruptedError()), code);
}

export const runCliWith = (env: Record<string, string>, ...args: string[]): Promise<CliResult> =>
  startCliWith(env, ...args).ended;

/** The same, on a data folder. */
export const startCli = (folder: string, ...args: string[]): RunningCli =>
  startCliWith({ DATA_DIR: folder }, ...args);

export const runCli = (folder: string, ...args: string[]): Promise<CliResult> =>
  startCli(folder, ...args).ended;

/** An operator command as a real process, for tests of signals, exit codes and standard streams. */
export function startCliProcess(env: Record<string, string>, ...args: string[]): RunningCli {
  const child = spawn(process.execPath, ['services/cli/main.ts', ...args], {
    cwd: root,
    env: environment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err] = [recordOutput(), recordOutput()];
  child.stdout.setEncoding('utf8').on('data', out.write);
  child.stderr.setEncoding('utf8').on('data', err.write);
  const code = once(child, 'close').then(([ended]) => ended as number | null);
  return running([out, err], (signal) => void child.kill(signal), code);
}
