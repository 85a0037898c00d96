/**
 * The number of the event that tombstones a stream; as `$tb` of its metadata it deletes the stream
 * softly.
 */
export const DELETED_STREAM = 2n ** 63n - 1n;

/** A position in the transaction log. */
export interface TfPosition {
  commit: bigint;
  prepare: bigint;
}

export type Expected = bigint | 'any' | 'no_stream' | 'stream_exists';

export interface Proposed {
  id: string;
  type: string;
  contentType: string;
  data: Uint8Array;
  metadata: Uint8Array;
}

export interface LogRecord extends Proposed {
  position: bigint;
  /** Where the record ends and the next one begins. */
  next: bigint;
  stream: string;
  revision: bigint;
  /** Milliseconds since the epoch. */
  created: bigint;
}

/** What a client asks a log to do. */
export type Operation =
  | { kind: 'append'; stream: string; expected: Expected; events: readonly Proposed[] }
  | { kind: 'remove'; stream: string; expected: Expected; hard: boolean };

/** What is looked at of a record before it is read. */
export type RecordHead = Pick<LogRecord, 'position' | 'next' | 'stream' | 'type'>;

export type Refusal = { kind: 'wrong_expected_version'; current: bigint } | { kind: 'deleted' };

/** `again` marks what an earlier append has written. */
export type AppendOutcome =
  { kind: 'success'; revision: bigint; position: bigint; again?: true } | Refusal;

export interface StreamRange {
  from: bigint | 'end';
  direction: 'forwards' | 'backwards';
  limit: number;
}

export type StreamRead =
  { kind: 'found'; records: LogRecord[] } | { kind: 'not_found' } | { kind: 'deleted' };
