import type { RunsInFlight } from '../../shared/runs/queueing/runsInFlight.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { ApiServer } from '../api/http/connection/server.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';

/**
 * How long the answers to interrupted runs may take to be written, and slow readers to take theirs.
 */
const LAST_WORDS_MS = 2_000;

interface StopOptions {
  server: ApiServer;
  inFlight: RunsInFlight;
  logger: Logger;
  graceMs: number;
}

/**
 * Stops accepting, lets runs in flight finish within the grace time, interrupts and records the
 * rest, and lets the last answers go out. When it resolves no run is in flight, and none begins any
 * more.
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
    answered = await resolvesWithin(closed, LAST_WORDS_MS);
    // A request that was accepted before may have begun its run only now, or is about to.
    if (answered || timeLeft() === 0) break;
    if (inFlight.count() === 0 && !server.isAnswering()) break;
  }
  const left = inFlight.count();
  inFlight.interruptAll();
  if (left > 0) {
    logger.warn(
      { runs_in_flight: left },
      'the grace time is over: the runs in flight are interrupted',
    );
    await inFlight.whenIdle();
    answered = await resolvesWithin(closed, LAST_WORDS_MS);
  }
  if (!answered) server.destroyConnections();
  logger.info('shut down');
}
