import { isTurnlogError } from '../../shared/errors.ts';

/** Ends a program that failed: what an operator can mend is a sentence, anything else is a defect and comes with its stack. */
export function reportFailure(error: unknown): void {
  process.stderr.write(
    `${isTurnlogError(error) ? error.message : String(error instanceof Error ? error.stack : error)}\n`,
  );
  process.exitCode ||= 1;
}
