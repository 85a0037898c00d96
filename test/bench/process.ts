import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** This checkout. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface BenchProcess {
  pid: number;
  /** The first line of standard output that matches. */
  line: string;
  /** Resident memory in bytes. */
  memory(): number;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/**
 * Starts `node args…` in a checkout, this one by default, and resolves when it has printed a line
 * that matches.
 */
export async function startProcess(
  args: readonly string[],
  options: { env?: Record<string, string>; until?: RegExp; checkout?: string } = {},
): Promise<BenchProcess> {
  const child: ChildProcess = spawn(process.execPath, args, {
    cwd: options.checkout ?? ROOT,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout! }).on('line', (text) => {
      if ((options.until ?? /./).test(text)) resolve(text);
    });
    child.once('exit', (code) => reject(new Error(`${args.join(' ')} ended with code ${code}`)));
  });
  return {
    pid: child.pid!,
    line,
    memory: () =>
      Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]) *
      1024,
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      await exited;
    },
  };
}
