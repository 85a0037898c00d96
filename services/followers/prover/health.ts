import { createEndOfLog } from '../../../shared/eventlog/identity/endOfLog.ts';
import { createLag } from '../../../shared/eventlog/identity/lag.ts';
import { isoTime, type Clock } from '../../../shared/ports/clock.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';
import type { ProverReport, TransparencyLogHealth } from '../../../shared/health/health.ts';
import type { WitnessesReport } from './witnessed.ts';
import { createWitnessesHealth } from './witnessesHealth.ts';

/** What is known of a prover, in this thread or another, by its reports. */
export interface ProverHealth {
  onReport: (report: ProverReport) => void;
  onWitnesses: (report: WitnessesReport) => void;
  /** Answers within 100 ms from what is known, whatever the store does. */
  health(): Promise<TransparencyLogHealth>;
}

/** Keeps what the prover of this process has told last. */
export function createProverHealth(log: Pick<EventLog, 'head'>, clock: Clock): ProverHealth {
  const lag = createLag(clock);
  const witnesses = createWitnessesHealth();
  const endOfLog = createEndOfLog(log);
  let state: ProverReport['state'] = 'active';
  let size: number | null = null;
  let signedAt: number | undefined;
  let trouble: string | undefined;

  return {
    onWitnesses: witnesses.onReport,
    onReport(report) {
      ({ state, trouble } = report);
      if (state === 'standing_by') [size, signedAt] = [null, undefined];
      size = report.size ?? size;
      signedAt = report.signedAt ?? signedAt;
      if (report.position !== undefined) {
        lag.resumed(report.position);
        // It was up to date with what it had read: its lag counts from what comes after that.
        lag.behind(report.position);
      }
      // From now on the end of the log is out of reach, whether or not anybody asks.
      if (trouble !== undefined) void endOfLog.latest().then(lag.behind);
    },
    async health() {
      const known = {
        state,
        size,
        signed_at: signedAt === undefined ? null : isoTime(signedAt),
        ...(trouble !== undefined && { trouble }),
      };
      if (state === 'standing_by') return { ...known, lag_ms: null };
      const asked = witnesses.health();
      return {
        ...known,
        lag_ms: lag.behind(await endOfLog.latest()).ms,
        ...(asked && { witnesses: asked }),
      };
    },
  };
}
