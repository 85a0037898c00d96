import { Rejection } from '../../shared/domain/rejection.ts';
import { isTurnlogError } from '../../shared/errors.ts';

/**
 * Ends a program that failed: what an operator can mend is a sentence, anything else is a defect
 * and comes with its stack.
 */
export function reportFailure(error: unknown): void {
  const isSentence = isTurnlogError(error) || error instanceof Rejection;
  const text = isSentence ? error.message : error instanceof Error ? error.stack : error;
  process.stderr.write(`${String(text)}\n`);
  process.exitCode ||= 1;
}
