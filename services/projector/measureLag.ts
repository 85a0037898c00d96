import { decodeEvent } from '../../shared/eventlog/codec.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { EventLog, Position } from '../../shared/ports/eventStore.ts';
import type { ProjectorHealth } from '../../shared/queries/health.ts';

const BATCH_SIZE = 1_000;
/** Counting reads the events: that a projector is further behind than this is all that has to be known then. */
const COUNTED = 10_000;

interface Measured {
  log: Pick<EventLog, 'head' | 'subscribe'>;
  clock: Clock;
}

/**
 * How far a checkpoint is behind the log: the events after it, counted up to 10,000, and the age of the oldest of them in
 * milliseconds. Errors: `store_unavailable`.
 */
export async function measureLag({ log, clock }: Measured, checkpoint: Position | undefined): Promise<Pick<ProjectorHealth, 'lag_events' | 'lag_ms'>> {
  const head = await log.head();
  if (head === undefined || (checkpoint !== undefined && checkpoint >= head)) return { lag_events: 0, lag_ms: 0 };
  const counted = new AbortController();
  let events = 0;
  let oldest: number | undefined;
  for await (const batch of log.subscribe({ after: checkpoint, batchSize: BATCH_SIZE, signal: counted.signal })) {
    oldest ??= batch.events[0] && Date.parse(decodeEvent(batch.events[0]).metadata.recorded_at);
    events += batch.events.length;
    if (batch.caughtUp || events >= COUNTED) counted.abort();
  }
  return { lag_events: Math.min(events, COUNTED), lag_ms: oldest === undefined ? 0 : Math.max(0, clock.now() - oldest) };
}
