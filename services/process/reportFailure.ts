import { Rejection } from '../../shared/domain/rejection.ts';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';

/** What to tell of a failure: a sentence, or the stack of a defect. */
export function textOf(error: unknown): string {
  // What failed while something was closed hides neither itself nor why that was closed.
  if (error instanceof SuppressedError)
    return `${textOf(error.suppressed)}\n${textOf(error.error)}`;
  const isSentence = isTurnlogError(error) || error instanceof Rejection;
  return String(isSentence ? error.message : error instanceof Error ? error.stack : error);
}

/** Ends a program that failed: what an operator can mend is a sentence, anything else is a defect and comes with its stack. */
export function reportFailure(error: unknown): void {
  process.stderr.write(`${textOf(error)}\n`);
  process.exitCode ||= 1;
}
