import type { RunsInFlight } from '../shared/commands/run/runsInFlight.ts';
import type { Logger } from '../shared/logger.ts';
import type { ApiServer } from './api/server.ts';
import { settlesWithin } from './settlesWithin.ts';

/** How long the answers to interrupted runs may take to be written, and slow readers to take theirs. */
const LAST_WORDS_MS = 2_000;

interface Stopping {
  server: ApiServer;
  inFlight: RunsInFlight;
  logger: Logger;
  graceMs: number;
}

/**
 * Stops accepting, lets runs in flight finish within the grace time, interrupts and records the rest, and lets the last
 * answers go out.
 */
export async function stopInOrder({ server, inFlight, logger, graceMs }: Stopping): Promise<void> {
  logger.info({ runs_in_flight: inFlight.count() }, 'shutting down: no new requests are accepted');
  const closed = server.close();
  if (!(await settlesWithin(inFlight.idle(), graceMs))) {
    logger.warn({ runs_in_flight: inFlight.count() }, 'the grace time is over: the runs in flight are interrupted');
    inFlight.interruptAll();
    await inFlight.idle();
  }
  if (!(await settlesWithin(closed, LAST_WORDS_MS))) server.cut();
  logger.info('shut down');
}
