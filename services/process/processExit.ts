import { Rejection } from '../../shared/domain/rejection.ts';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../shared/lib/logger.ts';

/** The text that reports a failure: a sentence, or the stack of a defect. */
export function failureText(error: unknown): string {
  // Report both: the original error, and the one that closing the resources raised.
  if (error instanceof SuppressedError)
    return `${failureText(error.suppressed)}\n${failureText(error.error)}`;
  const isSentence = isTurnlogError(error) || error instanceof Rejection;
  return String(isSentence ? error.message : error instanceof Error ? error.stack : error);
}

/** Reports the failure on standard error, and sets exit code 1. */
export function reportFailure(error: unknown): void {
  process.stderr.write(`${failureText(error)}\n`);
  process.exitCode ||= 1;
}

/**
 * EX_SOFTWARE of sysexits.h: an internal error, or a stop that took too long. Exit code 1 means that
 * the service could not start.
 */
export const DEFECT_EXIT_CODE = 70;
/** Time to flush responses and to close connections, files and threads after the runs have ended. */
const CLOSING_MS = 15_000;

interface StopOptions {
  /** Aborted to stop the service, by a signal or a defect. */
  stop: AbortController;
  logger: Pick<Logger, 'fatal'>;
  graceMs: number;
}

/**
 * Ends the process, with exit code 70, when the service takes longer to stop than the grace time and
 * the time for closing, such as when a peer keeps a connection open. Recorded events are durable.
 */
export function limitStop({ stop, logger, graceMs }: StopOptions): void {
  const limitMs = graceMs + CLOSING_MS;
  const end = (): void => {
    logger.fatal({ limit_ms: limitMs }, 'the service did not stop in time: the process ends');
    process.exit(DEFECT_EXIT_CODE);
  };
  const startTimer = (): void => void setTimeout(end, limitMs).unref();
  stop.signal.addEventListener('abort', startTimer, { once: true });
}

/**
 * Treats an unhandled error as a defect, after which the state of the process can't be trusted: logs
 * it and stops the service as a signal does, with exit code 70.
 */
export function stopOnDefect({ stop, logger }: Omit<StopOptions, 'graceMs'>): void {
  const end = (error: unknown): void => {
    logger.fatal({ err: error }, 'unhandled error: the service stops');
    process.exitCode = DEFECT_EXIT_CODE;
    if (!stop.signal.aborted) stop.abort(new Error('stopped by an unhandled error'));
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', end);
}
