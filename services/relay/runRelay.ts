import { setTimeout as sleep } from 'node:timers/promises';
import { isTurnlogError } from '../../shared/errors.ts';
import type { EventBatch, EventLog, Position } from '../../shared/ports/eventStore.ts';
import type { Publication, Publisher } from '../../shared/ports/publisher.ts';
import type { RelayHealth } from '../../shared/queries/health.ts';
import { percentOf } from '../../shared/projections/progress.ts';
import type { Lag } from './lag.ts';
import { logIdOf, resumeAfter } from './logIdentity.ts';
import { orIdle } from './orIdle.ts';
import { toPublicEvents } from './toPublicEvents.ts';

/** Large, because a transaction costs some ten milliseconds whatever is in it. */
const BATCH_SIZE = 1000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
const LAG_LINE_MS = 10_000;

/** What the relay needs of a logger; pino's fits. */
export type RelayLogger = Record<'info' | 'warn', (fields: object, message: string) => void>;

export interface Relay {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  publisher: Publisher;
  /** Where to begin when there is no checkpoint: after this position, else at the first event. */
  startAfter: Position | undefined;
  /** How long another relay must have been silent before this one takes over from it. */
  takeOverMs: number;
  lag: Lag;
  signal: AbortSignal;
  onState: (state: RelayHealth['state']) => void;
  logger: RelayLogger;
}

/** Logs, at most a line each ten seconds, how far behind the relay is, and when it no longer is. */
function lagLines({ log, lag, logger }: Relay): (batch: EventBatch) => Promise<void> {
  let lastLine = performance.now();
  let told = false;
  return async ({ caughtUp, position }) => {
    if (caughtUp && told) logger.info({ position, lag_ms: 0 }, 'The relay has caught up');
    if (caughtUp) told = false;
    if (caughtUp || performance.now() - lastLine < LAG_LINE_MS) return;
    lastLine = performance.now();
    told = true;
    const head = await log.head();
    logger.info({ position, lag_ms: lag.milliseconds(head), percent: Math.floor(percentOf(position, head)) }, 'The relay is behind');
  };
}

/** Publishes what the subscription brings, until it fails, is fenced, or the signal aborts. */
async function follow(relay: Relay, publication: Publication): Promise<void> {
  const { log, lag, signal, takeOverMs } = relay;
  let logId = await logIdOf(log);
  let position = resumeAfter(publication.checkpoint, logId, relay.startAfter);
  lag.resumed(position);
  relay.onState('relaying');
  const logLag = lagLines(relay);
  const ended = new AbortController();
  const batches = log.subscribe({ after: position, batchSize: BATCH_SIZE, signal: AbortSignal.any([signal, ended.signal]) });
  try {
    for await (const batch of orIdle(batches, takeOverMs / 3)) {
      if (batch === 'idle') {
        await publication.beat();
        continue;
      }
      lag.reading(batch);
      logId ??= await logIdOf(log);
      if (logId !== undefined && batch.position !== undefined && batch.position !== position) {
        await publication.publish(toPublicEvents(batch.events), { position: batch.position, log_id: logId });
        position = batch.position;
      }
      lag.published(batch);
      await logLag(batch);
      if (signal.aborted) return;
    }
  } finally {
    ended.abort();
  }
  if (!signal.aborted) throw new Error('the subscription ended');
}

/** Resolves when whoever has taken over has been silent for some time. Two that stand by wait for different times. */
async function standBy({ publisher, takeOverMs, signal }: Relay): Promise<void> {
  for (let seen = await publisher.activity(); ; ) {
    await sleep(takeOverMs * (1 + Math.random() / 2), undefined, { signal });
    const now = await publisher.activity();
    if (now === seen) return;
    seen = now;
  }
}

async function publishUntilFenced(relay: Relay): Promise<void> {
  const publication = await relay.publisher.takeOver();
  try {
    await follow(relay, publication);
  } finally {
    await publication.close();
  }
}

/**
 * Publishes every event of the log in order, first what is there, then live, until the signal aborts. A failure is logged
 * and followed by a pause, from 0.1 s doubling to 5 s, and by going on from the checkpoint; nothing is left out. Fenced by
 * another relay, it stands by until that one falls silent.
 */
export async function runRelay(relay: Relay): Promise<void> {
  const { signal, logger, lag, onState } = relay;
  let pause = FIRST_PAUSE_MS;
  let standingBy = false;
  while (!signal.aborted) {
    const before = lag.position();
    try {
      if (standingBy) await standBy(relay);
      standingBy = false;
      await publishUntilFenced(relay);
    } catch (error) {
      if (signal.aborted) return;
      if (isTurnlogError(error, 'publisher_fenced')) {
        standingBy = true;
        onState('standing_by');
        logger.info({ position: lag.position() }, 'Another relay has taken over; this one stands by');
        continue;
      }
      if (lag.position() !== before) pause = FIRST_PAUSE_MS;
      onState(standingBy ? 'standing_by' : 'retrying');
      logger.warn({ err: error, retry_in_ms: pause, position: lag.position() }, 'The relay failed and goes on from its checkpoint');
      await sleep(pause, undefined, { signal }).catch(() => undefined);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }
}
