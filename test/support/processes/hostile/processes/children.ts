import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { plainEnvironment } from '../../plainEnvironment.ts';
import type { Report } from '../attack.ts';
import type { Prey } from '../world.ts';

/** Whoever loads the service gives way to it, and to who measures it. */
const NICE = ['nice', '-n', '10'];

function startChild(
  script: string,
  args: readonly string[],
  { nice, env = {} }: { nice: boolean; env?: Record<string, string> },
): ChildProcess {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const [command, ...rest] = [...(nice ? NICE : []), process.execPath, file, ...args];
  return spawn(command!, rest, {
    env: { ...plainEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

async function firstLine(child: ChildProcess): Promise<string> {
  const ended = once(child, 'close').then(([code]) => {
    throw new Error(`${child.spawnargs[0]} ended with code ${code} and said nothing`);
  });
  const [line] = (await Promise.race([
    once(createInterface({ input: child.stdout! }), 'line'),
    ended,
  ])) as [string];
  return line;
}

export interface ModelServer {
  baseUrl: string;
  close(): Promise<void>;
}

/** The provider as a process; `slowMs` is what its slow model takes. */
export async function startModelServer({
  slowMs,
  nice,
}: {
  slowMs: number;
  nice: boolean;
}): Promise<ModelServer> {
  const child = startChild('modelServer.ts', [String(slowMs)], { nice });
  const exited = once(child, 'exit');
  return {
    baseUrl: await firstLine(child),
    async close() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

export interface Attacker {
  /** Resolves with what it was answered when its time is over. */
  report: Promise<Report>;
  kill(): void;
}

interface Orders {
  url: string;
  seconds: number;
  prey: Prey;
  /** It goes on until it has met these, within a bound. */
  meets: readonly string[];
  env: Record<string, string>;
}

/** An attack by a process of its own. */
export function startAttacker(
  attack: string,
  { url, seconds, prey, meets, env }: Orders,
): Attacker {
  const args = [attack, url, String(seconds), JSON.stringify(prey), meets.join()];
  const child = startChild('attacker.ts', args, { nice: true, env });
  return {
    report: firstLine(child).then((line) => JSON.parse(line) as Report),
    kill: () => void child.kill('SIGKILL'),
  };
}
