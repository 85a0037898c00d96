import type { ToolCalledData } from '../events.ts';

/**
 * How much of what a turn puts out somebody has: all rounds before `round`, and of it so many
 * characters (UTF-16 units) of its text and so many of its tool calls.
 */
export interface TurnOutputPosition {
  round: number;
  chars: number;
  calls: number;
}

/** What one model call of a turn put out: its text, and then the tool calls that it asked for. */
export interface TurnRound {
  text: string;
  calls: readonly ToolCalledData[];
}

/** A part of what a turn puts out, and the place behind it. */
export type TurnPart =
  | { type: 'text'; text: string; position: TurnOutputPosition }
  | { type: 'called'; call: ToolCalledData; position: TurnOutputPosition };

export const START_OF_OUTPUT: TurnOutputPosition = { round: 1, chars: 0, calls: 0 };

/** Of one part. */
const PART_CHARS = 8_192;

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/**
 * The next part of a text, and how much of it there is then; no character is parted. `from` may be
 * within one: it is given whole.
 */
export function nextTextPart(text: string, from: number): { text: string; chars: number } {
  const start = from > 0 && isLowSurrogate(text.charCodeAt(from)) ? from - 1 : from;
  const last = Math.min(start + PART_CHARS, text.length);
  const end = isLowSurrogate(text.charCodeAt(last)) ? last - 1 : last;
  return { text: text.slice(start, end), chars: end };
}

/** What a turn put out after a place, in order; of a place beyond it, nothing. */
export function* partsAfter(
  rounds: readonly TurnRound[],
  after: TurnOutputPosition,
): Generator<TurnPart> {
  for (const [index, { text, calls }] of rounds.entries()) {
    const round = index + 1;
    if (round < after.round) continue;
    const place = round === after.round ? after : { round, chars: 0, calls: 0 };
    let { chars } = place;
    // Calls come behind the whole text.
    while (place.calls === 0 && chars < text.length) {
      const piece = nextTextPart(text, chars);
      ({ chars } = piece);
      yield { type: 'text', text: piece.text, position: { round, chars, calls: 0 } };
    }
    for (let at = place.calls; at < calls.length; at += 1)
      yield { type: 'called', call: calls[at]!, position: { round, chars, calls: at + 1 } };
  }
}

/** The place, or the end of a turn, as text that names it. */
export const formatTurnPosition = (turn: number, place: TurnOutputPosition | 'end'): string =>
  place === 'end'
    ? `${turn}-end`
    : `${turn}-${place.round}-${place.chars}${place.calls > 0 ? `-${place.calls}` : ''}`;

/** What names a place of a turn, as a pattern. */
export const TURN_POSITION_PATTERN =
  '^[1-9][0-9]{0,9}-(end|[1-9][0-9]{0,5}-[0-9]{1,9}(-[1-9][0-9]{0,5})?)$';
const NAME = new RegExp(TURN_POSITION_PATTERN);

/** The place of this turn that the text names; undefined where it names none. */
export function parseTurnPosition(
  name: string,
  turn: number,
): TurnOutputPosition | 'end' | undefined {
  if (!NAME.test(name)) return undefined;
  const [named, round, chars, calls] = name.split('-');
  if (Number(named) !== turn) return undefined;
  return round === 'end'
    ? 'end'
    : { round: Number(round), chars: Number(chars), calls: Number(calls ?? 0) };
}
