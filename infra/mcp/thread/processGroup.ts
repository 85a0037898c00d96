import { spawn, type ChildProcess } from 'node:child_process';

/** Signals a process and all processes that it has started. */
export function killGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // All of them have ended.
  }
}

/**
 * Kills the process group of `child` when this thread or process ends in any way, also by a crash:
 * a shell waits for the end of its standard input. Returns a function that ends the guard.
 */
export function guardGroup({ pid }: ChildProcess): () => void {
  const guard = spawn('/bin/sh', ['-c', 'read -r _ || kill -s KILL -- "-$0"', String(pid)], {
    env: {},
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.on('error', () => undefined);
  guard.stdin.on('error', () => undefined);
  return () => void guard.stdin.end('\n');
}
