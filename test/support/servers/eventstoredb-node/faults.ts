/**
 * What may happen to one append on its way: the name says whether the write happens, and what the
 * client gets to see.
 */
export type AppendFault =
  | 'none'
  | 'unavailable_before_write'
  | 'connection_lost_before_write'
  | 'no_answer_before_write'
  | 'stream_error_after_write'
  | 'connection_lost_after_write'
  | 'no_answer_after_write'
  | 'timeout_answer_after_write'
  | 'conflict_answer_after_write'
  | 'late_write';

export const APPEND_FAULTS: readonly AppendFault[] = [
  'none',
  'unavailable_before_write',
  'connection_lost_before_write',
  'no_answer_before_write',
  'stream_error_after_write',
  'connection_lost_after_write',
  'no_answer_after_write',
  'timeout_answer_after_write',
  'conflict_answer_after_write',
  'late_write',
];

/** The fault switches of a node; they may be turned at any time. */
export interface Faults {
  /** How long every call waits before it is handled, in milliseconds. */
  delayMs: number;
  /** Every call is answered UNAVAILABLE. */
  unavailable: boolean;
  /** Every call is accepted and never answered. */
  silent: boolean;
  /** Asked once for each append that arrives. */
  onAppend: () => AppendFault;
}

export const noFaults = (): Faults => ({
  delayMs: 0,
  unavailable: false,
  silent: false,
  onAppend: () => 'none',
});
