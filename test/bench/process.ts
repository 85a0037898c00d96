import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** This checkout. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** CPU time of the threads of a service, in microseconds. */
export type CpuTime = Record<(typeof CPU_PARTS)[number], number>;

export const CPU_PARTS = ['main', 'projector', 'writer', 'V8 workers', 'other'] as const;
/** The names of threads, of which Linux keeps 15 characters. */
const PART_OF_THREAD: Readonly<Record<string, keyof CpuTime>> = {
  MainThread: 'main',
  node: 'main',
  projector: 'projector',
  'event-store-wri': 'writer',
  V8Worker: 'V8 workers',
};

function cpuTimeOf(pid: number): CpuTime {
  const parts = { main: 0, projector: 0, writer: 0, 'V8 workers': 0, other: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const folder = `/proc/${pid}/task/${thread}`;
    try {
      const [nanoseconds] = readFileSync(`${folder}/schedstat`, 'utf8').split(' ');
      const name = readFileSync(`${folder}/comm`, 'utf8').trim();
      parts[PART_OF_THREAD[name] ?? 'other'] += Number(nanoseconds) / 1_000;
    } catch {
      // The thread has ended meanwhile.
    }
  }
  return parts;
}

export interface BenchProcess {
  pid: number;
  /** The first line of standard output that matches. */
  line: string;
  /** Resident memory in bytes. */
  memory(): number;
  /** CPU time so far in microseconds, by part of the process. */
  cpuTime(): CpuTime;
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
    cpuTime: () => cpuTimeOf(child.pid!),
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      await exited;
    },
  };
}
