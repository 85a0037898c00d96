import { isTurnlogError } from './turnlogError.ts';

const LONGEST = 300;

const cut = (text: string): string =>
  text.length > LONGEST ? `${text.slice(0, LONGEST - 1).toWellFormed()}…` : text;

/** What a line of the log says of an ordinary failure: no stack, and nothing of any length. */
interface InShort {
  code: string;
  reason: string;
  /** What the cause says, where there is one. */
  cause?: string;
}

/** An ordinary failure, for a line of the log. One with a stack is for defects. */
export function inShort(error: unknown): InShort {
  const { message, cause } = error instanceof Error ? error : new Error(String(error));
  return {
    code: isTurnlogError(error) ? error.code : 'internal_error',
    reason: cut(message),
    ...(cause instanceof Error && { cause: cut(cause.message) }),
  };
}
