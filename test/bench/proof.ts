/**
 * What verification and export cost: `node test/bench/proof.ts [<another checkout>]`. Each command is
 * a process, its start included. With another checkout both take turns on the same log.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { median } from './load.ts';
import { makeProofLog } from '../support/builders/proofLog.ts';

const SESSIONS = 10_000;
const TURNS = 10;
const EVENTS = SESSIONS * (2 * TURNS + 1);
const ROUNDS = 7;
/** Turns of the sessions that are exported: 20,001 and 100,001 events. */
const EXPORTED = [10_000, 50_000];

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const mib = (bytes: number): string => `${(bytes / 1_048_576).toFixed(0)} MB`;

/** The most memory that a process had so far; 0 when it has ended. */
function peakOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

interface Ran {
  seconds: number;
  peak: number;
}

/** What `npm run cli` starts Node with. */
function cliOf(checkout: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'));
  return (scripts.cli as string).split(' node ')[1]!.split(' ');
}

/** Runs an operator command as `npm run cli` does. */
async function run(checkout: string, folder: string, args: readonly string[]): Promise<Ran> {
  const began = performance.now();
  const child = spawn(process.execPath, [...cliOf(checkout), ...args], {
    cwd: checkout,
    env: {
      ...process.env,
      DATA_DIR: folder,
      LOG_LEVEL: 'warn',
      NODE_COMPILE_CACHE: 'node_modules/.cache/turnlog',
    },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  let peak = 0;
  while (child.exitCode === null && child.signalCode === null) {
    peak = Math.max(peak, peakOf(child.pid!));
    await Promise.race([ended, pause(20)]);
  }
  if (child.exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${child.exitCode}`);
  return { seconds: (performance.now() - began) / 1_000, peak };
}

async function measureVerify(checkouts: readonly string[]): Promise<void> {
  const { folder } = await makeProofLog({ sessions: SESSIONS, turns: TURNS });
  const rates = checkouts.map((): number[] => []);
  const peaks = checkouts.map(() => 0);
  for (let round = -1; round < ROUNDS; round += 1)
    for (const [at, checkout] of checkouts.entries()) {
      const { seconds, peak } = await run(checkout, folder, ['audit', 'verify']);
      // The first round fills the caches of both.
      if (round >= 0) rates[at]!.push(EVENTS / seconds);
      peaks[at] = Math.max(peaks[at]!, peak);
    }
  for (const [at, checkout] of checkouts.entries()) {
    const sorted = rates[at]!.toSorted((a, b) => a - b).map(Math.round);
    say(
      `audit verify, ${EVENTS} events, ${checkout}: ${Math.round(median(rates[at]!))} events/s (${sorted[0]} to ${sorted.at(-1)}), at most ${mib(peaks[at]!)}; bar ≥ 100,000 events/s`,
    );
  }
  await rm(folder, { recursive: true });
}

async function measureExport(checkouts: readonly string[]): Promise<void> {
  for (const turns of EXPORTED) {
    const { folder, session_id } = await makeProofLog({ sessions: 1, turns });
    const bundle = join(folder, 'bundle.tar');
    for (const checkout of checkouts) {
      const written = ['audit', 'export', '--session', session_id, '--out', bundle];
      const exported = await run(checkout, folder, written);
      const verified = await run(checkout, folder, ['audit', 'verify-bundle', bundle]);
      say(
        `session of ${2 * turns + 1} events, ${checkout}: audit export ${exported.seconds.toFixed(1)} s, at most ${mib(exported.peak)}; verify-bundle ${verified.seconds.toFixed(1)} s, at most ${mib(verified.peak)}; bar: flat memory`,
      );
      // An export does not replace a file.
      await rm(bundle);
    }
    await rm(folder, { recursive: true });
  }
}

const [other] = process.argv.slice(2);
const checkouts = [resolve('.'), ...(other === undefined ? [] : [resolve(other)])];
await measureVerify(checkouts);
await measureExport(checkouts);
