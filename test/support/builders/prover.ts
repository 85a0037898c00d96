import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFileTileTrees } from '../../../infra/files/tileStore.ts';
import type { Prover } from '../../../services/followers/prover/prover.ts';
import { withGapCheck } from '../../../shared/eventlog/following/gapCheck.ts';
import { runProver } from '../../../services/followers/prover/run.ts';
import type { EventLog, StoredEvent } from '../../../shared/ports/eventStore.ts';
import type { ProverReport } from '../../../shared/health/health.ts';
import { sessionStarted } from './events.ts';
import { recordHistory } from './history.ts';

export const signingKey = (): KeyObject => generateKeyPairSync('ed25519').privateKey;

/** So many events, of as many sessions. */
export function someEvents(count: number): StoredEvent[] {
  const { record } = recordHistory();
  return Array.from({ length: count }, (_, index) =>
    record({ stream: `session-session_${index}` }, sessionStarted()),
  );
}

export interface RunningProver {
  reports: ProverReport[];
  warnings: string[];
  /** Resolves with the first report that fits, from now on or the latest. */
  until(fits: (report: ProverReport) => boolean): Promise<ProverReport>;
  stop(): Promise<void>;
}

/** A prover over trees in a folder. */
export function startProver(
  log: Omit<EventLog, 'trouble' | 'close'>,
  folder: string,
  options: Partial<
    Pick<
      Prover,
      | 'signingKeys'
      | 'witnesses'
      | 'acquireLeadership'
      | 'origin'
      | 'clock'
      | 'declareTree'
      | 'untilFilled'
    >
  >,
): RunningProver {
  const closing = new AbortController();
  const reports: ProverReport[] = [];
  const warnings: string[] = [];
  const note = (_: object, message: string): void => void warnings.push(message);
  const run = runProver({
    log,
    followed: withGapCheck(log),
    acquireLeadership: async () => ({
      ...openFileTileTrees(folder),
      lost: new AbortController().signal,
      close: async () => undefined,
    }),
    origin: 'turnlog',
    signingKeys: () => [],
    witnesses: { wanted: 0, witnesses: [] },
    onWitnesses: () => undefined,
    declareTree: async () => undefined,
    untilCompared: async () => undefined,
    clock: { now: () => Date.now() },
    onReport: (report) => void reports.push(report),
    logger: { info: () => undefined, warn: note, error: note },
    signal: closing.signal,
    ...options,
  });
  return {
    reports,
    warnings,
    async until(fits) {
      for (let at = Math.max(reports.length - 1, 0); ; at += 1) {
        while (at >= reports.length) await sleep(5);
        if (fits(reports[at]!)) return reports[at]!;
      }
    },
    async stop() {
      closing.abort();
      await run;
    },
  };
}
