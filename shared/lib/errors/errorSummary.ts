import { isTurnlogError } from './turnlogError.ts';

const MAX_LENGTH = 300;

const truncate = (text: string): string =>
  text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH - 1).toWellFormed()}…` : text;

/** What a line of the log says of an ordinary failure: no stack, and nothing of any length. */
interface ErrorSummary {
  code: string;
  reason: string;
  /** What the cause says, where there is one. */
  cause?: string;
}

/** A failure as health shows it: the message of an error of ours; any other one may quote secrets. */
export const publicReason = (error: unknown): string =>
  isTurnlogError(error) ? error.message : 'It failed; the log says why.';

/** An ordinary failure, for a line of the log. One with a stack is for defects. */
export function errorSummary(error: unknown): ErrorSummary {
  const { message, cause } = error instanceof Error ? error : new Error(String(error));
  return {
    code: isTurnlogError(error) ? error.code : 'internal_error',
    reason: truncate(message),
    ...(cause instanceof Error && { cause: truncate(cause.message) }),
  };
}
