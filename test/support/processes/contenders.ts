import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { eventually } from './operator.ts';

/** Processes of one program of which one is active at a time; each tells its state in a line. */
export function contenders(args: readonly string[]) {
  /** With the state that each has told last. */
  const told = new Map<ChildProcess, string>();
  return {
    told,
    start(): void {
      const one = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
      told.set(one, '');
      createInterface({ input: one.stdout }).on('line', (line) => {
        if (told.has(one)) told.set(one, line);
      });
    },
    async end(one: ChildProcess): Promise<void> {
      told.delete(one);
      const exited = once(one, 'exit');
      one.kill('SIGKILL');
      await exited;
    },
    /** Waits for one that has told this last. */
    one: async (wanted: string): Promise<ChildProcess> =>
      (await eventually(
        async () => [...told].find(([, state]) => state.startsWith(wanted)),
        Boolean,
      ))![0],
  };
}
