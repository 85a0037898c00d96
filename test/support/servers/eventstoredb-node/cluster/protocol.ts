import type { Member, Outcome } from '../node.ts';
import type { Operation } from '../types.ts';

/** A row of the log as it travels between nodes. */
export type Row = Record<string, null | number | bigint | string | Uint8Array>;

/**
 * Where a leader's time begins: the record that a new leader writes first. Two logs that share it
 * agree up to it.
 */
export interface Epoch {
  number: number;
  position: bigint;
}

/**
 * How far a log goes. The longest log is the one with the highest epoch, then with the most bytes
 * in it.
 */
export interface LogEnd {
  epoch: number;
  position: bigint;
}

/**
 * What nodes tell each other. Messages may be lost with a connection and may come late; none may be
 * done harm by that.
 */
export type Message =
  /** To everybody, all the time: the sign of life. */
  | { kind: 'gossip'; term: number; state: Member['state']; instanceId: string }
  /** Asks for a vote, or (`trial`) whether there would be one: nobody disturbs a leader in vain. */
  | { kind: 'ask_vote'; term: number; trial: boolean; end: LogEnd }
  | { kind: 'vote'; term: number; trial: boolean; granted: boolean }
  /**
   * Whole writes that follow on `from`, where the leader's log is in `epoch`; none when it only
   * tells what is committed.
   */
  | { kind: 'replicate'; term: number; from: bigint; epoch: number; rows: Row[]; committed: bigint }
  /** The log agrees with the leader's up to `end`. */
  | { kind: 'replicated'; term: number; end: bigint }
  /** The log does not have what the leader would go on from. */
  | { kind: 'mismatch'; term: number; epochs: Epoch[]; end: bigint }
  /** A write that came to a follower, and what became of it. */
  | { kind: 'forward'; term: number; request: string; operation: Operation }
  | { kind: 'answer'; term: number; request: string; outcome: Outcome; committed: bigint };

export const isLonger = (a: LogEnd, b: LogEnd): boolean =>
  a.epoch > b.epoch || (a.epoch === b.epoch && a.position > b.position);

export const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
export const max = (a: bigint, b: bigint): bigint => (a > b ? a : b);
