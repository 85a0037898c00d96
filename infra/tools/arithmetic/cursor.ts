import { ToolFailure } from '../tool.ts';
import { ALLOWED } from './functions.ts';

/** Ends a calculation with a sentence for the model. */
export const refuse = (message: string): never => {
  throw new ToolFailure(message);
};

/** A position in a text, which reading advances. */
export interface Cursor {
  text: string;
  at: number;
  /** The next character that is not a space; '' at the end. */
  next(): string;
  /** Skips `sign` if it is the next character. */
  take(sign: string): boolean;
  /** Throws ToolFailure, which says why the next character is not expected. */
  unexpected(): never;
}

export function createCursor(text: string): Cursor {
  const cursor: Cursor = {
    text,
    at: 0,
    next() {
      while (text[cursor.at] === ' ') cursor.at += 1;
      return text[cursor.at] ?? '';
    },
    take(sign) {
      if (cursor.next() !== sign) return false;
      cursor.at += 1;
      return true;
    },
    unexpected() {
      const character = cursor.next();
      if (character === '') return refuse(`The expression ends too early. ${ALLOWED}`);
      if (character === '=') return refuse('There may be = only at the end of the expression.');
      if (character === ',')
        return refuse(
          'A comma separates the arguments of a function, or thousands, as in 1,000. Write decimals with a point, as in 12.5.',
        );
      const remainingText = text.slice(cursor.at, cursor.at + 20).toWellFormed();
      return refuse(`${JSON.stringify(remainingText)} is not understood. ${ALLOWED}`);
    },
  };
  return cursor;
}
