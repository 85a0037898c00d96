import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';

/** A position in EventStoreDB's transaction log. */
interface LogPosition {
  commit: number | bigint;
  prepare: number | bigint;
}

/** The digits of the largest 64-bit number. With padding, positions sort as text. */
const DIGITS = 20;
const POSITION = /^\d{20}\/\d{20}$/;

/**
 * The largest valid position. EventStoreDB 24.2.0 to 24.10.4 end a catch-up without matching events
 * with a checkpoint of 2^64-1 (KDB-710). As a start position that means "from now on".
 */
const MAX_POSITION = 2n ** 63n - 1n;

/** Whether a log can contain the position. */
export const isValidLogPosition = ({ commit, prepare }: LogPosition): boolean =>
  commit <= MAX_POSITION && prepare <= MAX_POSITION;

export const formatPosition = ({ commit, prepare }: LogPosition): Position =>
  `${String(commit).padStart(DIGITS, '0')}/${String(prepare).padStart(DIGITS, '0')}` as Position;

/**
 * The position of an event. The prepare position that a server reports depends on the call and on
 * the server's version; the commit position does not. For events that were appended through gRPC,
 * `$all` has both numbers equal.
 */
export const toEventPosition = (commit: number | bigint): Position => {
  const number = String(commit).padStart(DIGITS, '0');
  return `${number}/${number}` as Position;
};

/** The commit position, which counts the bytes of the log before it; 0 for an empty log. */
export const commitOf = (position: Position | undefined): bigint =>
  BigInt(position?.slice(0, DIGITS) ?? 0);

export const positionInvalidError = (
  position: Position,
  reason: string,
  cause?: unknown,
): TurnlogError =>
  new TurnlogError(
    'position_invalid',
    `The position ${position} is not a position of this event store's log: ${reason}.`,
    { cause },
  );

/** Whether the text has the form of a position of this adapter. */
export const isValidPosition = (text: string): boolean =>
  POSITION.test(text) && text.split('/').every((part) => BigInt(part) <= MAX_POSITION);

/** Parses a position. Throws `position_invalid` for any other text. */
export function parsePosition(position: Position): LogPosition {
  if (!POSITION.test(position))
    throw positionInvalidError(
      position,
      'its form is two numbers of 20 digits with a slash between them',
    );
  const [commit, prepare] = position.split('/').map(BigInt) as [bigint, bigint];
  const logPosition = { commit, prepare };
  if (!isValidLogPosition(logPosition))
    throw positionInvalidError(position, 'it lies beyond the end of any log');
  return logPosition;
}
