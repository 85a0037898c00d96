import { createLogEndEstimate } from '../../../shared/eventlog/identity/endOfLog.ts';
import { createLagTracker } from '../../../shared/eventlog/identity/lag.ts';
import { isoTime, type Clock } from '../../../shared/ports/clock.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';
import type { ProverReport, TransparencyLogHealth } from '../../../shared/health/health.ts';
import { createWitnessesHealth, type WitnessesReport } from './witnesses.ts';

/** The health of a prover of this thread or another one. */
export interface ProverHealth {
  onReport: (report: ProverReport) => void;
  onWitnesses: (report: WitnessesReport) => void;
  onDeclared: () => void;
  /** Resolves once the log declares its tree, or the prover has reported trouble. */
  declared: Promise<void>;
  /** Resolves within 100 ms, even while the store does not answer. */
  health(): Promise<TransparencyLogHealth>;
}

/** Keeps the latest report of the prover of this process. */
export function createProverHealth(log: Pick<EventLog, 'head'>, clock: Clock): ProverHealth {
  const lag = createLagTracker(clock);
  const witnesses = createWitnessesHealth();
  const endOfLog = createLogEndEstimate(log);
  let state: ProverReport['state'] = 'active';
  let size: number | null = null;
  let signedAt: number | undefined;
  let trouble: string | undefined;
  const declared = Promise.withResolvers<void>();

  return {
    onWitnesses: witnesses.onReport,
    onDeclared: declared.resolve,
    declared: declared.promise,
    onReport(report) {
      ({ state, trouble } = report);
      if (state === 'standing_by') [size, signedAt] = [null, undefined];
      size = report.size ?? size;
      signedAt = report.signedAt ?? signedAt;
      if (report.position !== undefined) {
        lag.resumeAt(report.position);
        // It has caught up with what it had read: its lag counts from the next event.
        lag.measure(report.position);
      }
      // From now on the end of the log counts as unreachable, also while health is not requested.
      if (trouble !== undefined) declared.resolve();
      if (trouble !== undefined) void endOfLog.latest().then(lag.measure);
    },
    async health() {
      const health = {
        state,
        size,
        signed_at: signedAt === undefined ? null : isoTime(signedAt),
        ...(trouble !== undefined && { trouble }),
      };
      if (state === 'standing_by') return { ...health, lag_ms: null };
      const witnessesHealth = witnesses.health();
      return {
        ...health,
        lag_ms: lag.measure(await endOfLog.latest()).ms,
        ...(witnessesHealth && { witnesses: witnessesHealth }),
      };
    },
  };
}
