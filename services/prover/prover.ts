import type { KeyObject } from 'node:crypto';
import type { Identified } from '../../shared/eventlog/logIdentity.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { EventLog } from '../../shared/ports/eventStore.ts';
import type { ActiveTrees } from '../../shared/ports/tileStore.ts';
import type { ProverReport } from '../../shared/queries/health.ts';

/** What the prover needs of a logger; pino's fits. */
export type ProverLogger = Record<
  'info' | 'warn' | 'error',
  (fields: object, message: string) => void
>;

/** A checkpoint that was signed, and can't be taken back. */
export interface SignedCheckpoint {
  /** The signed note. */
  note: string;
  size: number;
  /** The proof that it goes on where a tree of so many leaves was. Errors: those of proofs.ts. */
  consistencyProof(from: number): Promise<Uint8Array[]>;
}

/**
 * Asks witnesses for their cosignatures before a checkpoint is published. Resolves with the lines that
 * were had, each with its newline; whatever comes after the signal has aborted is not waited for.
 */
export type Cosign = (
  checkpoint: SignedCheckpoint,
  signal: AbortSignal,
) => Promise<readonly string[]>;

/** What a prover works with. */
export interface Prover {
  log: Identified & Pick<EventLog, 'subscribe'>;
  /** Waits until this process is the one that proves; undefined when the signal aborted first. */
  becomeActive: (signal: AbortSignal) => Promise<ActiveTrees | undefined>;
  /** What stands before the log's id in the origin of its tree. */
  origin: string;
  /** The keys that sign: all of them, each time. Errors: `configuration_invalid`. */
  signingKeys: () => readonly KeyObject[];
  cosign: Cosign;
  onReport: (report: ProverReport) => void;
  clock: Clock;
  logger: ProverLogger;
  signal: AbortSignal;
}
