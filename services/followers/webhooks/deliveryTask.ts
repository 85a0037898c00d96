import { repeatUntilAborted } from '../../../shared/lib/concurrency/repeatUntilAborted.ts';
import { errorSummary, publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { isoTime } from '../../../shared/ports/clock.ts';
import type { WebhookProgress } from '../../../shared/webhooks/webhookProgress.ts';
import { createCommitSequence, type CommitSequence } from './commitSequence.ts';
import { deliverEvents } from './deliverEvents.ts';
import { MessageRejected, type Delivery } from './delivery.ts';
import { isCursorLost } from './followAccount.ts';

const { answerMs, firstPauseMs, longestPauseMs, retryAfterMs, failingMs } = LIMITS.webhooks;
/** Spread, so that webhooks don't return to a receiver all at once. */
const PAUSES = { firstMs: firstPauseMs, longestMs: longestPauseMs, spread: [0.5, 1] } as const;
/** After failures that are not the receiver's; they count anew after an attempt of this length. */
const OWN_PAUSES = { ...PAUSES, longestMs: 30_000 } as const;
const STEADY_MS = 60_000;
/** Failures of a store, or of load, that pass without an operator. */
const PASSING = ['store_unavailable', 'rate_limited', 'overloaded'] as const;

/** The sequence of a delivery, whose progress it updates. */
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

/** Records a failure of the receiver, `elapsedMs` after the one before. Returns for how long it fails. */
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

/** Reports, to operators, a failure that is not the receiver's. */
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
 * Delivers events to one webhook until the signal aborts. After a failure it resumes from the committed
 * cursor, with growing pauses, and sends one message at a time until one is accepted. A webhook is
 * disabled when its receiver has failed for a day, or says that it is gone.
 */
export async function runDeliveryTask(delivery: Delivery): Promise<void> {
  const { signal } = delivery;
  const { sequence, onPending } = sequenceOf(delivery);
  const pauses = createBackoff(PAUSES);
  const ownPauses = createBackoff(OWN_PAUSES);
  let begunAt = 0;
  let failedAt: number | undefined;
  /** From one failure to the next, where no failure of Turnlog comes between them. */
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
      // The feed has ended, because the process stops.
      return firstPauseMs;
    },
    async onFailure(error) {
      if (signal.aborted) return 'stop';
      if (error instanceof MessageRejected) return onRejection(error).catch(onOwnFailure);
      if (performance.now() - begunAt > STEADY_MS) ownPauses.reset();
      return onOwnFailure(error);
    },
    signal,
    ref: false,
  });
}
