import type { EventBatch } from '../../../shared/ports/eventStore.ts';
import { percentOf } from '../../../shared/projections/progress.ts';
import type { Relay } from './relay.ts';

const LAG_LINE_MS = 10_000;

/** Logs, at most a line each ten seconds, how far behind the relay is, and when it no longer is. */
export function lagLines({
  lag,
  endOfLog,
  logger,
}: Pick<Relay, 'lag' | 'endOfLog' | 'logger'>): (batch: EventBatch) => Promise<void> {
  let lastLine = performance.now();
  let told = false;
  return async ({ caughtUp, position }) => {
    if (caughtUp && told) logger.info({ position, lag_ms: 0 }, 'The relay has caught up');
    if (caughtUp) told = false;
    if (caughtUp || performance.now() - lastLine < LAG_LINE_MS) return;
    lastLine = performance.now();
    told = true;
    const end = await endOfLog.latest();
    logger.info(
      { position, lag_ms: lag.behind(end).ms, percent: Math.floor(percentOf(position, end)) },
      'The relay is behind',
    );
  };
}
