import type { KeyObject } from 'node:crypto';
import type { IdentifiableLog } from '../../../shared/eventlog/identity/logIdentity.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import type { ActiveTrees } from '../../../shared/transparency/tileStore.ts';
import type { WitnessPolicy } from '../../../shared/transparency/witness.ts';
import type { ProverReport } from '../../../shared/health/health.ts';
import type { WitnessesReport } from './witnesses.ts';

/** The part of pino's logger that the prover uses. */
export type ProverLogger = Record<
  'info' | 'warn' | 'error',
  (fields: object, message: string) => void
>;

/** The dependencies of a prover. */
export interface Prover {
  log: IdentifiableLog & Pick<EventLog, 'subscribe'>;
  /** The log whose events become leaves. That of a server fails if events are left out (gapCheck.ts). */
  followed: Pick<EventLog, 'subscribe'>;
  /** Waits until no other process proves; resolves with undefined when the signal aborted first. */
  acquireLeadership: (signal: AbortSignal) => Promise<ActiveTrees | undefined>;
  /** The name before the log's id in the origin of its tree. */
  origin: string;
  /**
   * All keys that sign each checkpoint; none if the key file is missing. It may only be created for a
   * tree that has never been signed.
   */
  signingKeys: (hasSigned: boolean) => readonly KeyObject[];
  /**
   * Records the tree in the log. Resolves with the position of the declaration; undefined if it is
   * recorded already.
   */
  declareTree: (tree: {
    origin: string;
    vkeys: readonly string[];
  }) => Promise<Position | undefined>;
  /** Called once the log declares the tree that is continued. */
  onDeclared?: () => void;
  witnesses: WitnessPolicy;
  onReport: (report: ProverReport) => void;
  /** Not called without witnesses. */
  onWitnesses: (report: WitnessesReport) => void;
  /** Resolves once the tree was compared with what others know of it: nothing is signed before. */
  untilCompared: (signal: AbortSignal) => Promise<void>;
  /**
   * Resolves once leaves may be added, or the signal aborts. A thread that also fills read models adds
   * none meanwhile: the service waits for the rows, and the log is read by one follower at a time.
   */
  untilFilled?: (signal: AbortSignal) => Promise<void>;
  clock: Clock;
  logger: ProverLogger;
  signal: AbortSignal;
}
