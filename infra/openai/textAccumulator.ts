import { LIMITS } from '../../shared/limits.ts';
import { createBoundedBuffer, type ResponseMemory } from './boundedBuffer.ts';
import { toStorableText } from './answer.ts';

/** A text that comes in pieces. */
export interface TextAccumulator {
  /**
   * Takes a piece; gives what can be shown of it, as it will be recorded. Undefined where there is no
   * room for it.
   */
  add(piece: string): string | undefined;
  /** What has not been shown yet, since its other half never came. */
  rest(): string;
  isFull(): boolean;
  text(): string;
  release(): void;
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

/**
 * Joins the pieces of a text, which may part a character in two: its first half is held back until
 * the other one comes. They are kept as bytes in one buffer, as a million strings of one character
 * would take thirty times as much.
 */
export function createTextAccumulator(
  inProgress: ResponseMemory,
  maxBytes: number = LIMITS.model.answerBytes,
): TextAccumulator {
  const body = createBoundedBuffer(maxBytes, inProgress);
  let half = '';
  return {
    add(piece) {
      const text = half + piece;
      const cut = isHighSurrogate(text.charCodeAt(text.length - 1));
      half = cut ? text.slice(-1) : '';
      const shown = toStorableText(cut ? text.slice(0, -1) : text);
      return body.add(Buffer.from(shown)) ? shown : undefined;
    },
    rest() {
      const shown = toStorableText(half);
      half = '';
      return shown !== '' && body.add(Buffer.from(shown)) ? shown : '';
    },
    isFull: body.isFull,
    text: body.text,
    release: body.release,
  };
}
