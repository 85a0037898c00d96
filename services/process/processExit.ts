import { Rejection } from '../../shared/domain/rejection.ts';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../shared/lib/logger.ts';

/** What to tell of a failure: a sentence, or the stack of a defect. */
export function failureText(error: unknown): string {
  // What failed while something was closed hides neither itself nor why that was closed.
  if (error instanceof SuppressedError)
    return `${failureText(error.suppressed)}\n${failureText(error.error)}`;
  const isSentence = isTurnlogError(error) || error instanceof Rejection;
  return String(isSentence ? error.message : error instanceof Error ? error.stack : error);
}

/** Ends a program that failed: what an operator can mend is a sentence, anything else is a defect and comes with its stack. */
export function reportFailure(error: unknown): void {
  process.stderr.write(`${failureText(error)}\n`);
  process.exitCode ||= 1;
}

/** Aborts at the first SIGTERM or SIGINT; a second one ends the process at once. */
export function stopAtSignal(stop: AbortController): void {
  for (const name of ['SIGTERM', 'SIGINT'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
}

/** EX_SOFTWARE of sysexits.h: an internal error; 1 says that the service could not start. */
const DEFECT_EXIT_CODE = 70;
/** For what closes after the runs: connections, files, threads. */
const CLOSING_MS = 10_000;

interface DefectOptions {
  /** Aborted to end the service as a signal does. */
  stop: AbortController;
  logger: Pick<Logger, 'fatal'>;
  graceMs: number;
}

/**
 * An error that nobody handled is a defect, after which nothing can be trusted to be whole: it is
 * logged with its cause, and the process ends as at a signal (runs are recorded, files closed),
 * within a limit, with exit code 70.
 */
export function stopOnDefect({ stop, logger, graceMs }: DefectOptions): void {
  const end = (error: unknown): void => {
    logger.fatal({ err: error }, 'nobody handled an error; the service ends');
    process.exitCode = DEFECT_EXIT_CODE;
    setTimeout(() => process.exit(DEFECT_EXIT_CODE), graceMs + CLOSING_MS).unref();
    if (!stop.signal.aborted) stop.abort(new Error('ended by an error that nobody handled'));
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', end);
}
