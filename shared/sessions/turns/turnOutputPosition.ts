import type { ToolCalledData } from '../events.ts';

/**
 * A reader's position in the output of a turn. The reader has all rounds before `round` and, of
 * this round, `reasoning` characters (UTF-16 units) of the reasoning, `chars` characters of the text
 * and `calls` tool calls. A reader with a part of the text gets no more reasoning.
 */
export interface TurnOutputPosition {
  round: number;
  /** Absent for none. */
  reasoning?: number;
  chars: number;
  calls: number;
}

/** The output of one model call of a turn: its reasoning, its text, then the requested tool calls. */
export interface TurnRound {
  reasoning: string;
  text: string;
  calls: readonly ToolCalledData[];
}

/** A part of a turn's output, and the position after it. */
export type TurnPart =
  | { type: 'reasoning' | 'text'; text: string; position: TurnOutputPosition }
  | { type: 'called'; call: ToolCalledData; position: TurnOutputPosition };

export const START_OF_OUTPUT: TurnOutputPosition = { round: 1, chars: 0, calls: 0 };

/** After all output of any turn: only its end follows. */
export const END_OF_OUTPUT: TurnOutputPosition = {
  round: Number.MAX_SAFE_INTEGER,
  chars: 0,
  calls: 0,
};

/** The longest text of one part. */
const PART_CHARS = 8_192;

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/**
 * The next part of a text, and the length of the text up to its end. Never splits a character: if
 * `from` lies within a character, the part contains the whole character.
 */
export function nextTextPart(text: string, from: number): { text: string; chars: number } {
  const start = from > 0 && isLowSurrogate(text.charCodeAt(from)) ? from - 1 : from;
  const last = Math.min(start + PART_CHARS, text.length);
  const end = isLowSurrogate(text.charCodeAt(last)) ? last - 1 : last;
  return { text: text.slice(start, end), chars: end };
}

/**
 * Yields the output of a turn after a position, in order. Yields nothing for a position beyond the
 * output.
 */
export function* partsAfter(
  rounds: readonly TurnRound[],
  after: TurnOutputPosition,
): Generator<TurnPart> {
  for (const [index, { reasoning, text, calls }] of rounds.entries()) {
    const round = index + 1;
    if (round < after.round) continue;
    const start = round === after.round ? after : { round, chars: 0, calls: 0 };
    let { chars } = start;
    let reasoned = chars > 0 || start.calls > 0 ? Infinity : (start.reasoning ?? 0);
    while (reasoned < reasoning.length) {
      const piece = nextTextPart(reasoning, reasoned);
      reasoned = piece.chars;
      const position = { round, reasoning: reasoned, chars: 0, calls: 0 };
      yield { type: 'reasoning', text: piece.text, position };
    }
    // Calls follow the complete text.
    while (start.calls === 0 && chars < text.length) {
      const piece = nextTextPart(text, chars);
      ({ chars } = piece);
      yield { type: 'text', text: piece.text, position: { round, chars, calls: 0 } };
    }
    for (let at = start.calls; at < calls.length; at += 1)
      yield { type: 'called', call: calls[at]!, position: { round, chars, calls: at + 1 } };
  }
}

/** Formats a position, or the end of a turn, as text. */
export const formatTurnPosition = (turn: number, position: TurnOutputPosition | 'end'): string =>
  position === 'end'
    ? `${turn}-end`
    : `${turn}-${position.round}-${position.chars}${suffixOf(position)}`;

function suffixOf({ reasoning = 0, calls }: TurnOutputPosition): string {
  if (calls > 0) return `-${calls}`;
  return reasoning > 0 ? `-r${reasoning}` : '';
}

/** The pattern of a formatted position. */
export const TURN_POSITION_PATTERN =
  '^[1-9][0-9]{0,9}-(end|[1-9][0-9]{0,5}-[0-9]{1,9}(-[1-9][0-9]{0,5}|-r[1-9][0-9]{0,8})?)$';
const NAME = new RegExp(TURN_POSITION_PATTERN);

/** Parses a position in this turn, or in any if absent; undefined for any other text. */
export function parseTurnPosition(
  name: string,
  turn?: number,
): TurnOutputPosition | 'end' | undefined {
  if (!NAME.test(name)) return undefined;
  const [named, round, chars, last = '0'] = name.split('-');
  if (turn !== undefined && Number(named) !== turn) return undefined;
  if (round === 'end') return 'end';
  const text = { round: Number(round), chars: Number(chars) };
  return last.startsWith('r')
    ? { ...text, reasoning: Number(last.slice(1)), calls: 0 }
    : { ...text, calls: Number(last) };
}
