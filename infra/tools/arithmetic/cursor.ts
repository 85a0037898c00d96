import { ToolFailure } from '../tool.ts';
import { ALLOWED } from './functions.ts';

/** Ends a calculation with a sentence for the model. */
export const refuse = (message: string): never => {
  throw new ToolFailure(message);
};

/** A place in a text, moved on by reading. */
export interface Cursor {
  text: string;
  at: number;
  /** The next sign that is no space; '' at the end. */
  next(): string;
  /** Moves behind `sign` if it is the next one. */
  take(sign: string): boolean;
  /** What is wrong with the next sign. Always throws. */
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
      const found = cursor.next();
      if (found === '') return refuse(`The expression ends too early. ${ALLOWED}`);
      if (found === '=') return refuse('There may be = only at the end of the expression.');
      if (found === ',')
        return refuse(
          'A comma separates the arguments of a function, or thousands, as in 1,000. Write decimals with a point, as in 12.5.',
        );
      const rest = text.slice(cursor.at, cursor.at + 20).toWellFormed();
      return refuse(`${JSON.stringify(rest)} is not understood. ${ALLOWED}`);
    },
  };
  return cursor;
}
