import type { TransparencyFinding } from '../health/health.ts';

/** The findings of all processes on their transparency log. */
export interface TransparencyFindings {
  /**
   * Reports what this process found, nothing if undefined, and resolves with what the others report.
   * Throws `store_unavailable`.
   */
  exchange(own: TransparencyFinding | undefined): Promise<TransparencyFinding[]>;
  /** Withdraws the report of this process. Throws `store_unavailable`. */
  withdraw(): Promise<void>;
}
