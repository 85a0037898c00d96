import { readdirSync, readFileSync } from 'node:fs';
import { startServerProcess, type ServerProcess } from '../serverProcess.ts';
import type { World } from './world.ts';

const LOOK_MS = 50;

export interface Memory {
  /** The most of what was seen, and the kernel's own peak; MB (10⁶ bytes). */
  peak: number;
  /** What is resident now; undefined once the process has ended. */
  now(): number | undefined;
  /** The most file descriptors, connections for the most part. */
  handles(): number;
  stop(): void;
}

function statusOf(pid: number, field: string): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const [, kib] = new RegExp(`${field}:\\s+(\\d+) kB`).exec(status) ?? [];
    return kib === undefined ? undefined : (Number(kib) * 1_024) / 1_000_000;
  } catch {
    return undefined;
  }
}

function handlesOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

/** Looks at the resident memory of a process, again and again. */
export function watchMemory(pid: number): Memory {
  let handles = 0;
  const look = (): void => {
    memory.peak = Math.max(memory.peak, statusOf(pid, 'VmRSS') ?? 0, statusOf(pid, 'VmHWM') ?? 0);
    handles = Math.max(handles, handlesOf(pid));
  };
  const timer = setInterval(look, LOOK_MS);
  const memory: Memory = {
    peak: 0,
    now: () => statusOf(pid, 'VmRSS'),
    handles: () => handles,
    stop: () => clearInterval(timer),
  };
  look();
  return memory;
}

/**
 * A service over the world with these options too, started as the image does, with the heap of the
 * pod in infra/deploy/kubernetes.
 */
export const startConfined = ({ env }: World, options: Record<string, string>): ServerProcess =>
  startServerProcess(
    {
      ...env,
      ...options,
      NODE_OPTIONS: '--max-old-space-size=256',
      MALLOC_ARENA_MAX: '2',
      MALLOC_MMAP_THRESHOLD_: '32768',
      MALLOC_TRIM_THRESHOLD_: '131072',
    },
    [],
    undefined,
    [process.execPath, '--expose-gc', '--max-semi-space-size=8'],
  );
