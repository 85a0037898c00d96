import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { plainEnvironment } from '../plainEnvironment.ts';
import { root } from '../../docs/projectFiles.ts';

const LOOK_MS = 50;

export interface RecipeProcess {
  /** What it has written to standard output. */
  output: () => string;
  /** The same of standard error. */
  errors: () => string;
  /** Resolves when `done` holds; rejects when the process ends before. */
  until: (done: () => Promise<boolean>) => Promise<void>;
  /** Resolves with its exit code; null after a signal that it does not handle. */
  exited: Promise<number | null>;
  /** Ends it, and resolves with its exit code. */
  end: (signal: 'SIGKILL' | 'SIGTERM') => Promise<number | null>;
}

/** A consumer in a process of its own, run as examples/README.md says. */
export function startRecipe(
  command: string,
  args: readonly string[],
  env: Record<string, string>,
): RecipeProcess {
  const child = spawn(command, args, {
    cwd: root,
    env: { ...plainEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  // Not `exit`: what it has written is all there at `close`.
  const exited = once(child, 'close').then(([code]) => code as number | null);
  let ended = false;
  void exited.then(() => (ended = true));
  return {
    output: () => output,
    errors: () => errors,
    exited,
    async until(done) {
      while (!(await done())) {
        if (ended) throw new Error(`the consumer has ended: ${errors}`);
        await sleep(LOOK_MS);
      }
    },
    end(signal) {
      child.kill(signal);
      return exited;
    },
  };
}
