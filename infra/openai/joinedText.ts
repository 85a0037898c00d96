import { LIMITS } from '../../shared/limits.ts';
import { createBody, type AnswersInProgress } from './body.ts';
import { storable } from './answer.ts';

/** A text that comes in pieces. */
export interface JoinedText {
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
export function createJoinedText(
  inProgress: AnswersInProgress,
  maxBytes: number = LIMITS.model.answerBytes,
): JoinedText {
  const body = createBody(maxBytes, inProgress);
  let half = '';
  return {
    add(piece) {
      const text = half + piece;
      const cut = isHighSurrogate(text.charCodeAt(text.length - 1));
      half = cut ? text.slice(-1) : '';
      const shown = storable(cut ? text.slice(0, -1) : text);
      return body.add(Buffer.from(shown)) ? shown : undefined;
    },
    rest() {
      const shown = storable(half);
      half = '';
      return shown !== '' && body.add(Buffer.from(shown)) ? shown : '';
    },
    isFull: body.isFull,
    text: body.text,
    release: body.release,
  };
}
