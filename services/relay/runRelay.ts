import { setTimeout as sleep } from 'node:timers/promises';
import { isTurnlogError } from '../../shared/errors.ts';
import type { EventBatch, EventLog, Position } from '../../shared/ports/eventStore.ts';
import type { Publication, Publisher } from '../../shared/ports/publisher.ts';
import type { RelayHealth } from '../../shared/queries/health.ts';
import { percentOf } from '../../shared/projections/progress.ts';
import type { EndOfLog } from '../../shared/eventlog/endOfLog.ts';
import type { Lag } from '../../shared/eventlog/lag.ts';
import { createSubscribeAfter, logIdOf, resumeAfter } from './logIdentity.ts';
import { orIdle } from './orIdle.ts';
import { toPublicEvents } from './toPublicEvents.ts';

/** Large, because a transaction costs some ten milliseconds whatever is in it. */
const BATCH_SIZE = 1000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
/**
 * Where only an operator can help. Each attempt takes over from another relay, which would do no better: they are
 * to be few.
 */
const FIRST_HELPLESS_PAUSE_MS = 5000;
const LONGEST_HELPLESS_PAUSE_MS = 60_000;
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
  endOfLog: EndOfLog;
  signal: AbortSignal;
  /** With the reason of `retrying`, where only an operator can change it. */
  onState: (state: RelayHealth['state'], reason?: string) => void;
  logger: RelayLogger;
}

/** Logs, at most a line each ten seconds, how far behind the relay is, and when it no longer is. */
function lagLines({ lag, endOfLog, logger }: Relay): (batch: EventBatch) => Promise<void> {
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

interface Following extends Relay {
  /** Of this relay, for as long as it runs. */
  subscribeAfter: ReturnType<typeof createSubscribeAfter>;
}

/** Publishes what the subscription brings, until it fails, is fenced, or the signal aborts. */
async function follow(relay: Following, publication: Publication): Promise<void> {
  const { log, lag, signal, subscribeAfter, takeOverMs } = relay;
  let logId = await logIdOf(log);
  let position = resumeAfter(publication.checkpoint, logId, relay.startAfter);
  const logLag = lagLines(relay);
  const ended = new AbortController();
  const from = {
    log,
    checkpoint: publication.checkpoint,
    after: position,
    batchSize: BATCH_SIZE,
    signal: AbortSignal.any([signal, ended.signal]),
  };
  let begun = false;
  try {
    for await (const batch of orIdle(subscribeAfter(from), takeOverMs / 3)) {
      // Only now: the log has accepted the position.
      if (!begun) lag.resumed(position);
      if (!begun) relay.onState('relaying');
      begun = true;
      if (batch === 'idle') {
        await publication.beat();
        continue;
      }
      lag.reading(batch);
      logId ??= await logIdOf(log);
      if (logId !== undefined && batch.position !== undefined && batch.position !== position) {
        await publication.publish(toPublicEvents(batch.events), {
          position: batch.position,
          log_id: logId,
        });
        position = batch.position;
      }
      lag.done();
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
  for (let seen = await publisher.activity(); ;) {
    await sleep(takeOverMs * (1 + Math.random() / 2), undefined, { signal });
    const now = await publisher.activity();
    if (now === seen) return;
    seen = now;
  }
}

async function publishUntilFenced(relay: Following): Promise<void> {
  const publication = await relay.publisher.takeOver();
  try {
    await follow(relay, publication);
  } finally {
    await publication.close();
  }
}

/** A pause that doubles from each time to the next. */
function createPause(
  signal: AbortSignal,
  { firstMs, longestMs }: { firstMs: number; longestMs: number },
) {
  let next = firstMs;
  return {
    next: () => next,
    reset: () => void (next = firstMs),
    async wait(): Promise<void> {
      await sleep(next, undefined, { signal }).catch(() => undefined);
      next = Math.min(next * 2, longestMs);
    },
  };
}

/** How failures are logged and how long they are followed by a pause. */
function createRetries({ signal, logger, lag }: Relay) {
  // One each: an ordinary failure after a refusal is tried again as soon as any other.
  const ordinary = createPause(signal, { firstMs: FIRST_PAUSE_MS, longestMs: LONGEST_PAUSE_MS });
  const ofHelpless = createPause(signal, {
    firstMs: FIRST_HELPLESS_PAUSE_MS,
    longestMs: LONGEST_HELPLESS_PAUSE_MS,
  });
  let told: string | undefined;

  return {
    /** It got on in the meantime. */
    moved(): void {
      ordinary.reset();
      ofHelpless.reset();
      told = undefined;
    },
    /** Says it, unless it is what only an operator can change and was said before. */
    async pauseAfter(failure: unknown, helpless: string | undefined): Promise<void> {
      const pause = helpless === undefined ? ordinary : ofHelpless;
      const line =
        helpless === undefined
          ? 'The relay failed and goes on from its checkpoint'
          : 'The relay publishes nothing until this is changed';
      const fields = { err: failure, retry_in_ms: pause.next(), position: lag.position() };
      if (helpless === undefined || helpless !== told) logger.warn(fields, line);
      told = helpless;
      await pause.wait();
    },
  };
}

/** What only an operator can change: where the relay is to begin. */
const helplessness = (error: unknown): string | undefined =>
  isTurnlogError(error, 'position_invalid') || isTurnlogError(error, 'configuration_invalid')
    ? error.message
    : undefined;

/**
 * Publishes every event of the log in order, first what is there, then live, until the signal aborts. A failure
 * is logged and followed by a pause, from 0.1 s doubling to 5 s, and by going on from the checkpoint; nothing is
 * left out. Where it can't begin there the pauses are from 5 s to a minute. Fenced by another relay, it stands by
 * until that one falls silent.
 */
export async function runRelay(relay: Relay): Promise<void> {
  const { signal, logger, lag, onState } = relay;
  const following: Following = { ...relay, subscribeAfter: createSubscribeAfter() };
  const retries = createRetries(relay);
  let standingBy = false;
  while (!signal.aborted) {
    const before = lag.position();
    try {
      if (standingBy) await standBy(relay);
      standingBy = false;
      await publishUntilFenced(following);
    } catch (error) {
      if (signal.aborted) return;
      if (isTurnlogError(error, 'publisher_fenced')) {
        standingBy = true;
        onState('standing_by');
        logger.info(
          { position: lag.position() },
          'Another relay has taken over; this one stands by',
        );
        continue;
      }
      if (lag.position() !== before) retries.moved();
      const reason = helplessness(error);
      onState(standingBy ? 'standing_by' : 'retrying', reason);
      await retries.pauseAfter(error, reason);
    }
  }
}
