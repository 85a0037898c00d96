import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Position } from '../../shared/ports/eventStore.ts';

/** A position in EventStoreDB's transaction log. */
interface LogPosition {
  commit: bigint;
  prepare: bigint;
}

/** Digits of the largest 64-bit number: padded to these, text sorts as the numbers do. */
const DIGITS = 20;
const FORM = /^\d{20}\/\d{20}$/;

/**
 * The largest number that a position can be. What is larger says something else: EventStoreDB
 * 24.2.0 to 24.10.4 end a catch-up that matched nothing with a checkpoint of 2^64-1 in both numbers
 * (KDB-710), which as a start means "from now on".
 */
const LARGEST = 2n ** 63n - 1n;

export const isPlace = ({ commit, prepare }: LogPosition): boolean =>
  commit <= LARGEST && prepare <= LARGEST;

export const toPosition = ({ commit, prepare }: LogPosition): Position =>
  `${String(commit).padStart(DIGITS, '0')}/${String(prepare).padStart(DIGITS, '0')}` as Position;

/**
 * The position of an event. What a server reports as its prepare position depends on the call and
 * on the server's version, the commit position does not: for an event that was written through gRPC
 * it is the event's own place, and `$all` has it there with both numbers equal.
 */
export const eventPosition = (commit: bigint): Position => toPosition({ commit, prepare: commit });

export const positionInvalid = (position: Position, why: string, cause?: unknown): TurnlogError =>
  new TurnlogError(
    'position_invalid',
    `The position ${position} is none of this event store's log: ${why}.`,
    { cause },
  );

/** False for what can be no position of this adapter. */
export const isPosition = (text: string): boolean =>
  FORM.test(text) && text.split('/').every((part) => BigInt(part) <= LARGEST);

/** Errors: `position_invalid` for a text that is no position of this adapter. */
export function fromPosition(position: Position): LogPosition {
  if (!FORM.test(position))
    throw positionInvalid(
      position,
      'its form is two numbers of 20 digits with a slash between them',
    );
  const [commit, prepare] = position.split('/').map(BigInt) as [bigint, bigint];
  const place = { commit, prepare };
  if (!isPlace(place)) throw positionInvalid(position, 'it lies beyond the end of any log');
  return place;
}
