import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { Position } from '../../ports/eventStore.ts';

/** Positions are signed 64-bit numbers; EventStoreDB's value for "the end" is beyond. */
const LAST_POSITION = 2n ** 63n - 1n;

/** True for text in the format of a position: one number, or two. */
export function isPositionFormat(text: string): boolean {
  return (
    /^\d{1,20}(?:\/\d{1,20})?$/.test(text) &&
    text.split('/').every((part) => BigInt(part) <= LAST_POSITION)
  );
}

const describeEnd = (end: Position | undefined): string =>
  end === undefined ? 'is empty' : `ends at ${end}`;

const ADVICE = 'use one that was printed for this log, or start without one';

/** `position_invalid` for text that is not in this log's position format, such as `16 digits`. */
export const invalidPositionError = (
  position: string,
  form: string,
  end: Position | undefined,
): TurnlogError =>
  new TurnlogError(
    'position_invalid',
    `${position} is not a position of this log, which ${describeEnd(end)}: a position has ${form}; ${ADVICE}.`,
  );

/** `position_invalid` for a position that the log does not have (yet). */
export const positionBeyondEndError = (
  position: Position,
  end: Position | undefined,
): TurnlogError =>
  new TurnlogError(
    'position_invalid',
    `The position ${position} lies beyond the end of the log, which ${describeEnd(end)}: ${ADVICE}.`,
  );

/**
 * Throws `position_invalid` for text that is no log's position. The store checks whether its own
 * log has the position.
 */
export function requirePosition(position: Position | undefined): void {
  if (position === undefined || isPositionFormat(position)) return;
  throw new TurnlogError('position_invalid', `${position} is not a valid position.`);
}
