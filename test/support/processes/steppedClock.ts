import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const preload = fileURLToPath(new URL('./steppedClock.mjs', import.meta.url));

export interface SteppedClock {
  /** For the processes whose clock it is to be. */
  env: Record<string, string>;
  /** Sets it off from the machine's by so many milliseconds, at once. */
  set(offMs: number): void;
}

/** A clock that a test puts back and forth while real processes run by it. */
export function steppedClock(folder: string): SteppedClock {
  const file = join(folder, 'clock');
  const set = (offMs: number): void => {
    writeFileSync(`${file}.next`, String(offMs));
    renameSync(`${file}.next`, file);
  };
  set(0);
  return { env: { NODE_OPTIONS: `--import=${preload}`, STEPPED_CLOCK: file }, set };
}
