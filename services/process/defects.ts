import type { Logger } from '../../shared/lib/logger.ts';

/** EX_SOFTWARE of sysexits.h: an internal error; 1 says that the service could not start. */
const DEFECT_EXIT_CODE = 70;
/** For what closes after the runs: connections, files, threads. */
const CLOSING_MS = 10_000;

interface Ending {
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
export function endInOrderOnDefect({ stop, logger, graceMs }: Ending): void {
  const end = (error: unknown): void => {
    logger.fatal({ err: error }, 'nobody handled an error; the service ends');
    process.exitCode = DEFECT_EXIT_CODE;
    setTimeout(() => process.exit(DEFECT_EXIT_CODE), graceMs + CLOSING_MS).unref();
    if (!stop.signal.aborted) stop.abort(new Error('ended by an error that nobody handled'));
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', end);
}
