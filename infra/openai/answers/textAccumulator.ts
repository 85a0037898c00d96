import { LIMITS } from '../../../shared/limits.ts';
import { createBoundedBuffer, type AnswerMemory } from './boundedBuffer.ts';
import { toStorableText } from './answer.ts';

/** A text that arrives in pieces. */
export interface TextAccumulator {
  /**
   * Adds a piece. Returns the text that can be shown, as it will be recorded; undefined if it
   * exceeds a limit.
   */
  add(piece: string): string | undefined;
  /** Returns the text that was held back because its other half never arrived. */
  rest(): string;
  isFull(): boolean;
  text(): string;
  release(): void;
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

/**
 * Joins the pieces of a text. A piece may end within a surrogate pair: its first half is held back
 * until the second one arrives. The text is kept as bytes in one buffer, because a million strings
 * of one character would take thirty times as much memory.
 */
export function createTextAccumulator(
  memory: AnswerMemory,
  maxBytes: number = LIMITS.model.answerBytes,
): TextAccumulator {
  const body = createBoundedBuffer(maxBytes, memory);
  let heldBack = '';
  return {
    add(piece) {
      const text = heldBack + piece;
      const endsWithinPair = isHighSurrogate(text.charCodeAt(text.length - 1));
      heldBack = endsWithinPair ? text.slice(-1) : '';
      const visibleText = toStorableText(endsWithinPair ? text.slice(0, -1) : text);
      return body.add(Buffer.from(visibleText)) ? visibleText : undefined;
    },
    rest() {
      const visibleText = toStorableText(heldBack);
      heldBack = '';
      return visibleText !== '' && body.add(Buffer.from(visibleText)) ? visibleText : '';
    },
    isFull: body.isFull,
    text: body.text,
    release: body.release,
  };
}
