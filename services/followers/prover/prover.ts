import type { KeyObject } from 'node:crypto';
import type { Identified } from '../../../shared/eventlog/identity/logIdentity.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';
import type { ActiveTrees } from '../../../shared/transparency/tileStore.ts';
import type { WitnessPolicy } from '../../../shared/transparency/witness.ts';
import type { ProverReport } from '../../../shared/health/health.ts';
import type { WitnessesReport } from './witnessed.ts';

/** What the prover needs of a logger; pino's fits. */
export type ProverLogger = Record<
  'info' | 'warn' | 'error',
  (fields: object, message: string) => void
>;

/** What a prover works with. */
export interface Prover {
  log: Identified & Pick<EventLog, 'subscribe'>;
  /** Waits until this process is the one that proves; undefined when the signal aborted first. */
  acquireLeadership: (signal: AbortSignal) => Promise<ActiveTrees | undefined>;
  /** What stands before the log's id in the origin of its tree. */
  origin: string;
  /** The keys that sign: all of them, each time. Errors: `configuration_invalid`. */
  signingKeys: () => readonly KeyObject[];
  witnesses: WitnessPolicy;
  onReport: (report: ProverReport) => void;
  /** Not called where nobody is asked to cosign. */
  onWitnesses: (report: WitnessesReport) => void;
  clock: Clock;
  logger: ProverLogger;
  signal: AbortSignal;
}
