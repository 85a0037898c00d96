import { isTurnlogError } from './turnlogError.ts';

const MAX_LENGTH = 300;

const truncate = (text: string): string =>
  text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH - 1).toWellFormed()}…` : text;

/** An ordinary failure in a log line: no stack, and bounded length. */
interface ErrorSummary {
  code: string;
  reason: string;
  /** The message of the cause, if any. */
  cause?: string;
}

/**
 * A failure as health shows it: the message of a TurnlogError. Other messages may contain secrets.
 */
export const publicReason = (error: unknown): string =>
  isTurnlogError(error) ? error.message : 'It failed; see the log for the reason.';

/** Summarizes an ordinary failure for the log. Defects are logged with their stack instead. */
export function errorSummary(error: unknown): ErrorSummary {
  const { message, cause } = error instanceof Error ? error : new Error(String(error));
  return {
    code: isTurnlogError(error) ? error.code : 'internal_error',
    reason: truncate(message),
    ...(cause instanceof Error && { cause: truncate(cause.message) }),
  };
}
