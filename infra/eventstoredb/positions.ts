import type { Position } from '../../shared/ports/eventStore.ts';

/** A place in EventStoreDB's transaction log. */
export interface LogPosition {
  commit: bigint;
  prepare: bigint;
}

/** Decimal digits of the largest 64-bit number: with all of them written out, text sorts as the numbers do. */
const DIGITS = 20;

export const toPosition = ({ commit, prepare }: LogPosition): Position =>
  `${String(commit).padStart(DIGITS, '0')}/${String(prepare).padStart(DIGITS, '0')}` as Position;

/**
 * The position of an event. What a server reports as its prepare position depends on the call and on the server's version,
 * the commit position does not: for an event that was written through gRPC it is the event's own place, and `$all` has it
 * there with both numbers equal.
 */
export const eventPosition = (commit: bigint): Position => toPosition({ commit, prepare: commit });

export function fromPosition(position: Position): LogPosition {
  const [commit = '0', prepare = commit] = position.split('/');
  return { commit: BigInt(commit), prepare: BigInt(prepare) };
}
