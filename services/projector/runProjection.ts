import { setTimeout as sleep } from 'node:timers/promises';
import type { EventLog, Position } from '../../shared/ports/eventStore.ts';
import type { ParkedStream, ProjectionStore } from '../../shared/ports/readModels.ts';
import { percentOf } from '../../shared/projections/progress.ts';

/** Large, because a batch costs one statement for each row that it changes and one commit: catching up is bound by that. */
const BATCH_SIZE = 1000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;

/** What the projector needs of a logger; pino's fits. */
export type ProjectorLogger = Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>;

/** What was just applied, and where that leaves the projection. */
export interface AppliedBatch {
  position: Position | undefined;
  caughtUp: boolean;
  percent: number;
  /** Events applied since the projection started. */
  events: number;
  /** The streams that this batch parked. */
  parked: ParkedStream[];
}

export interface Projection {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  store: ProjectionStore;
  signal: AbortSignal;
  onProgress: (batch: AppliedBatch) => void;
  logger: ProjectorLogger;
}

/** One subscription, from the checkpoint on, until it fails or the signal aborts. */
async function follow({ log, store, signal, onProgress }: Projection, counted: { events: number }): Promise<void> {
  let position = await store.checkpoint();
  let head = await log.head();
  for await (const batch of log.subscribe({ after: position, batchSize: BATCH_SIZE, signal })) {
    const moved = batch.position !== undefined && batch.position !== position;
    const parked = moved && batch.position !== undefined ? await store.apply(batch.events, batch.position) : [];
    position = batch.position ?? position;
    counted.events += batch.events.length;
    if (!batch.caughtUp && head !== undefined && position !== undefined && position >= head) head = await log.head();
    onProgress({ position, caughtUp: batch.caughtUp, percent: batch.caughtUp ? 100 : percentOf(position, head), events: counted.events, parked });
    if (signal.aborted) return;
  }
  if (!signal.aborted) throw new Error('the subscription ended');
}

/**
 * Applies every event of the log to the store, first what is there, then live, until the signal aborts. A failure is logged
 * and followed by a pause, from 0.1 s doubling to 5 s, and by going on from the last checkpoint; it never ends by itself.
 */
export async function runProjection(projection: Projection): Promise<void> {
  const { signal, logger } = projection;
  const counted = { events: 0 };
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    const before = counted.events;
    try {
      await follow(projection, counted);
    } catch (error) {
      if (signal.aborted) return;
      if (counted.events > before) pause = FIRST_PAUSE_MS;
      logger.warn({ err: error, retry_in_ms: pause }, 'The projection failed and goes on from its checkpoint');
      await sleep(pause, undefined, { signal }).catch(() => undefined);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }
}
