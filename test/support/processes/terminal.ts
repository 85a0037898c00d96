import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { plainEnvironment } from './plainEnvironment.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** Runs a command in a terminal of its own, and ends with its exit code. */
const IN_TERMINAL = `
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
`;

interface Terminal {
  /** Types what the keyboard would send, for example `\x03` for Ctrl-C. */
  type(keys: string): void;
  /** All that was printed so far, with the terminal's line ends. */
  printed(): string;
  /** Resolves with the match once the printed text has one; rejects when the command ends before. */
  prints(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with the exit code of the command. */
  exited: Promise<number | null>;
  kill(): void;
}

/** A command in a real terminal (a pseudo-terminal of Python's), in the project's folder
 * by default. */
export function openTerminal(
  command: readonly string[],
  env: Record<string, string>,
  folder = root,
): Terminal {
  const child = spawn('python3', ['-c', IN_TERMINAL, ...command], {
    cwd: folder,
    env: { ...plainEnvironment(), ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const exited = once(child, 'close').then(([code]) => code as number | null);
  return {
    type: (keys) => void child.stdin.write(keys),
    printed: () => text,
    prints: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(text);
          if (match) resolve(match);
        };
        child.stdout.on('data', look);
        void exited.then(() => reject(new Error(`the command ended; it printed: ${text}`)));
        look();
      }),
    exited,
    // Its processes get SIGHUP, because their terminal is gone.
    kill: () => void child.kill('SIGKILL'),
  };
}
