import { repeatUntilAborted } from '../../../shared/lib/concurrency/repeatUntilAborted.ts';
import { errorSummary, publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { yieldForText } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { isoTime } from '../../../shared/ports/clock.ts';
import { attemptDelivery } from '../../../shared/webhooks/webhookSender.ts';
import type { DeliveryAttempt, WebhookProgress } from '../../../shared/webhooks/webhookProgress.ts';
import { createCommitSequence, type CommitSequence } from './commitSequence.ts';
import { MessageOutdated, MessageRejected, type Delivery } from './delivery.ts';
import { isCursorLost, type FollowedItem } from './followAccount.ts';
import type { PublicEvent } from '../../../shared/publicEvents/publicEvent.ts';

/**
 * The largest delay of a timer. The wait for a permit ends only with a permit or with the signal.
 */
const WAIT_MS = 2 ** 31 - 1;

interface Attempt {
  sequence: CommitSequence;
  /** Sends one message at a time until one is accepted. */
  isProbe: boolean;
  /** Called whenever an event becomes pending. */
  onPending: () => void;
}

/** A message without its event, which would stay in memory with it. */
interface Message extends Pick<PublicEvent, 'id' | 'type'> {
  body: string;
  textStream: FollowedItem['textStream'];
}

/** The position of a message in the log and in the order of deliveries. */
interface Place extends Pick<PublicEvent, 'key' | 'time'>, Pick<FollowedItem, 'retain'> {
  cursor: string;
}

function recordAttempt({ progress, onProgress }: Delivery, attempt: DeliveryAttempt): void {
  const { attempts = [], ...rest } = progress();
  onProgress({ ...rest, attempts: [...attempts, attempt].slice(-LIMITS.webhooks.attempts) });
}

/**
 * Delivers the events after the committed cursor until the signal aborts. Events with the same key
 * are sent in order, events with different keys concurrently. After the first failure, no further
 * messages are sent and those in flight finish. Throws MessageRejected, MessageOutdated, and errors of
 * following the account or decrypting the texts.
 */
async function deliverEvents(
  delivery: Delivery,
  { sequence, isProbe, onPending }: Attempt,
): Promise<void> {
  const { row } = delivery;
  const texts = await delivery.textsOf(row);
  const failed = new AbortController();
  const signal = AbortSignal.any([delivery.signal, failed.signal]);
  /** The latest message of each key. */
  const lastOfKey = new Map<string, Promise<void>>();
  let inFlight = 0;
  let limit: number = isProbe ? 1 : LIMITS.webhooks.ahead;
  const isFull = (): boolean => inFlight >= limit;

  async function send({ type, textStream, ...content }: Message): Promise<void> {
    // The message is signed in one step. Nothing waits between the checks and the delivery.
    await yieldForText(row.account_id, content.body.length);
    await delivery.stopIfChanged();
    if (textStream !== undefined && (await delivery.isErased(textStream)))
      throw new MessageOutdated();
    signal.throwIfAborted();
    const message = { ...texts, ...content, signal: delivery.cutOff };
    const { outcome, attempt } = await attemptDelivery(delivery, message, type);
    recordAttempt(delivery, attempt);
    if (!outcome.accepted) throw new MessageRejected(outcome);
    limit = LIMITS.webhooks.ahead;
  }

  async function begin(message: Message, { key, cursor, time, retain }: Place): Promise<void> {
    while (isFull()) await Promise.race(lastOfKey.values());
    const size = { account_id: row.account_id };
    const permit = await delivery.semaphore.acquire(size, { waitMs: WAIT_MS, signal });
    const releaseMemory = retain?.();
    const onDelivered = sequence.begin(cursor, { id: message.id, time });
    inFlight += 1;
    const before = lastOfKey.get(key);
    const deliver = async (): Promise<void> => {
      try {
        await before;
        await send(message);
        onDelivered();
      } catch (error) {
        failed.abort(error);
      } finally {
        inFlight -= 1;
        permit.release();
        releaseMemory?.();
        if (lastOfKey.get(key) === delivering) lastOfKey.delete(key);
      }
    };
    const delivering = deliver();
    lastOfKey.set(key, delivering);
    onPending();
  }

  /** Returns false at the end. A separate function, so that no event stays in memory during a wait. */
  async function beginNext(items: AsyncIterator<FollowedItem>): Promise<boolean> {
    const { done, value } = await items.next();
    if (done) return false;
    delivery.onTrouble(undefined);
    const { event, cursor, retain, textStream } = value;
    if (event && !sequence.isDelivered(event.id)) {
      const { id, type, key, time } = event;
      const message = { id, type, body: delivery.bodyOf(event), textStream };
      await begin(message, { key, time, cursor, retain });
    } else sequence.skip(cursor, event?.id);
    return true;
  }

  sequence.restart();
  try {
    const { account_id: accountId, position, types } = row;
    const from = { accountId, position, types, cursor: delivery.progress().cursor };
    const items = delivery.follow({ ...from, signal })[Symbol.asyncIterator]();
    try {
      while ((await beginNext(items)) && !signal.aborted);
    } finally {
      await items.return?.();
    }
  } finally {
    await Promise.all(lastOfKey.values());
  }
  failed.signal.throwIfAborted();
}

const { answerMs, firstPauseMs, longestPauseMs, retryAfterMs, failingMs } = LIMITS.webhooks;
/** Randomized, so that webhooks do not all return to a receiver at once. */
const PAUSES = { firstMs: firstPauseMs, longestMs: longestPauseMs, spread: [0.5, 1] } as const;
/**
 * Pauses after failures that are not the receiver's. They start over after an attempt that lasted
 * `STEADY_MS`.
 */
const OWN_PAUSES = { ...PAUSES, longestMs: 30_000 } as const;
const STEADY_MS = 60_000;
/** Failures of a store, or from overload, that pass without an operator. */
const PASSING = ['store_unavailable', 'rate_limited', 'overloaded'] as const;

/** Creates the sequence of a delivery, which updates the delivery's progress. */
function sequenceOf({ progress, onProgress, clock }: Delivery): {
  sequence: CommitSequence;
  onPending: () => void;
} {
  function update(changed: WebhookProgress): void {
    const { oldest_at: _, ...rest } = changed;
    const oldest_at = sequence.oldestPending();
    onProgress({ ...rest, ...(oldest_at !== undefined && { oldest_at }) });
  }

  const sequence = createCommitSequence((cursor, deliveries) => {
    if (deliveries === 0) return update({ ...progress(), cursor });
    const { failing_since: _since, failing_ms: _ms, ...healthy } = progress();
    return update({ ...healthy, cursor, delivered_at: isoTime(clock.now()) });
  });
  return { sequence, onPending: () => update(progress()) };
}

/**
 * Records a failure of the receiver, `elapsedMs` after the previous failure. Returns for how many
 * milliseconds the receiver has been failing.
 */
function recordFailure(
  { progress, onProgress, clock }: Delivery,
  { message }: MessageRejected,
  elapsedMs: number,
): number {
  const at = isoTime(clock.now());
  const { failing_since = at, failing_ms: before = 0, ...rest } = progress();
  const failing_ms = Math.round(before + elapsedMs);
  onProgress({ ...rest, failing_since, failing_ms, last_error: { message, at } });
  return failing_ms;
}

async function disable(delivery: Delivery, reason: 'failing' | 'gone'): Promise<void> {
  const { webhook_id, account_id } = delivery.row;
  await delivery.disable(delivery.row, reason);
  const { failing_since, last_error } = delivery.progress();
  delivery.logger.warn(
    { webhook_id, account_id, reason, failing_since, last_error: last_error?.message },
    'a webhook was disabled: nothing is sent to it until its account enables it again',
  );
}

/** Reports a failure that is not the receiver's to operators. */
function reportTrouble(
  { row, onTrouble, onProgress, progress, logger }: Delivery,
  error: unknown,
): void {
  const { webhook_id } = row;
  if (isCursorLost(error)) {
    const { cursor: _, ...rest } = progress();
    onProgress(rest);
    logger.warn(
      { webhook_id },
      'the log was restored: everything since its creation is sent to the webhook again',
    );
    return;
  }
  if (!PASSING.some((code) => isTurnlogError(error, code)))
    logger.error({ ...errorSummary(error), webhook_id }, 'nothing can be sent to a webhook');
  onTrouble(publicReason(error));
}

/**
 * Delivers events to one webhook until the signal aborts. After a failure, the task resumes from
 * the committed cursor with growing pauses, and sends one message at a time until one is accepted.
 * A webhook is disabled when its receiver has been failing for a day or answers that it is gone.
 */
export async function runDeliveryTask(delivery: Delivery): Promise<void> {
  const { signal } = delivery;
  const { sequence, onPending } = sequenceOf(delivery);
  const pauses = createBackoff(PAUSES);
  const ownPauses = createBackoff(OWN_PAUSES);
  let begunAt = 0;
  let failedAt: number | undefined;
  /**
   * The longest time between two failures of the receiver, provided that no failure of Turnlog
   * comes between them.
   */
  let expectedMs = 0;

  const isFailing = (): boolean => delivery.progress().failing_since !== undefined;

  function onOwnFailure(error: unknown): number {
    reportTrouble(delivery, error);
    return ownPauses.next();
  }

  async function onRejection(error: MessageRejected): Promise<number> {
    const { gone, retryAfterMs: requestedMs = 0 } = error.outcome;
    if (!isFailing()) {
      pauses.reset();
      failedAt = undefined;
    }
    const now = performance.now();
    const elapsedMs = Math.min(now - (failedAt ?? now), expectedMs);
    const failing_ms = recordFailure(delivery, error, elapsedMs);
    failedAt = now;
    const pauseMs = Math.max(pauses.next(), Math.min(requestedMs, retryAfterMs));
    expectedMs = pauseMs + answerMs;
    if (gone) await disable(delivery, 'gone');
    else if (failing_ms >= failingMs) await disable(delivery, 'failing');
    return pauseMs;
  }

  await repeatUntilAborted({
    async run() {
      begunAt = performance.now();
      await deliverEvents(delivery, { sequence, onPending, isProbe: isFailing() });
      // The feed has ended because the process is stopping.
      return firstPauseMs;
    },
    async onFailure(error) {
      if (signal.aborted) return 'stop';
      // The event is read again, without its texts.
      if (error instanceof MessageOutdated) return firstPauseMs;
      if (error instanceof MessageRejected) return onRejection(error).catch(onOwnFailure);
      if (performance.now() - begunAt > STEADY_MS) ownPauses.reset();
      return onOwnFailure(error);
    },
    signal,
    ref: false,
  });
}
