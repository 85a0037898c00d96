import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { Position } from '../../ports/eventStore.ts';

/** Positions are signed 64-bit numbers; EventStoreDB's word for "the end" lies beyond. */
const LAST_POSITION = 2n ** 63n - 1n;

/** False for what no log has: a position is one number, or two. */
export function isPositionFormat(text: string): boolean {
  return (
    /^\d{1,20}(?:\/\d{1,20})?$/.test(text) &&
    text.split('/').every((part) => BigInt(part) <= LAST_POSITION)
  );
}

const ending = (end: Position | undefined): string =>
  end === undefined ? 'is empty' : `ends at ${end}`;

const ADVICE = 'take one that was printed for this log, or begin without one';

/** `position_invalid` for a text that is not of this log's form, such as `16 digits`. */
export const invalidPositionError = (
  position: string,
  form: string,
  end: Position | undefined,
): TurnlogError =>
  new TurnlogError(
    'position_invalid',
    `${position} is no position of this log, which ${ending(end)}: a position has ${form}; ${ADVICE}.`,
  );

/** `position_invalid` for a position that the log does not have (yet). */
export const positionBeyondEndError = (
  position: Position,
  end: Position | undefined,
): TurnlogError =>
  new TurnlogError(
    'position_invalid',
    `The position ${position} lies beyond the end of the log, which ${ending(end)}: ${ADVICE}.`,
  );

/**
 * Errors: `position_invalid` when the text can be no position of any log; whether it is one of this
 * log, its store says.
 */
export function requirePosition(position: Position | undefined): void {
  if (position === undefined || isPositionFormat(position)) return;
  throw new TurnlogError('position_invalid', `${position} is a position of no log.`);
}
