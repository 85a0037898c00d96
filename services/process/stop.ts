import type { RunsInFlight } from '../../shared/runs/queueing/runsInFlight.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { ApiServer } from '../api/http/connection/server.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';

/** Time for the responses of interrupted runs to be written, and for slow clients to read theirs. */
const RESPONSE_FLUSH_MS = 2_000;

interface StopOptions {
  server: ApiServer;
  inFlight: RunsInFlight;
  logger: Logger;
  graceMs: number;
}

/**
 * Stops accepting requests, lets runs in flight finish within the grace time, interrupts and records
 * the others, and flushes their responses. Once it resolves, no run is in flight and none can start.
 */
export async function stopGracefully({
  server,
  inFlight,
  logger,
  graceMs,
}: StopOptions): Promise<void> {
  logger.info({ runs_in_flight: inFlight.count() }, 'shutting down: no new requests are accepted');
  const graceEnds = performance.now() + graceMs;
  const timeLeft = (): number => Math.max(0, graceEnds - performance.now());
  const closed = server.close();
  let answered = false;
  while (await resolvesWithin(inFlight.whenIdle(), timeLeft())) {
    answered = await resolvesWithin(closed, RESPONSE_FLUSH_MS);
    // A request accepted earlier may have started its run only now, or may be about to.
    if (answered || timeLeft() === 0) break;
    if (inFlight.count() === 0 && !server.isAnswering()) break;
  }
  const remaining = inFlight.count();
  inFlight.interruptAll();
  if (remaining > 0) {
    logger.warn(
      { runs_in_flight: remaining },
      'the grace time is over: runs in flight are interrupted',
    );
    await inFlight.whenIdle();
    answered = await resolvesWithin(closed, RESPONSE_FLUSH_MS);
  }
  if (!answered) server.destroyConnections();
  logger.info('shut down');
}
