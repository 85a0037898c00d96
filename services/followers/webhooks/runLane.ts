import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { errorSummary, publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import { isoTime } from '../../../shared/ports/clock.ts';
import { deliver } from './deliver.ts';
import { isRestored } from './follow.ts';
import { NotTaken, type Lane } from './lane.ts';

const { answerMs, firstPauseMs, longestPauseMs, retryAfterMs, failingMs } = LIMITS.webhooks;
/** A receiver that comes back is not met by all webhooks at once. */
const PAUSES = { firstMs: firstPauseMs, longestMs: longestPauseMs, spread: [0.5, 1] } as const;
/** What is ours is tried sooner again, and as if anew where it went well for so long. */
const TROUBLES = { ...PAUSES, longestMs: 30_000 } as const;
const STEADY_MS = 60_000;

/** Notes the failure; `elapsedMs` since the one before. Gives how long nothing was taken. */
function noteFailure({ progress, onProgress, clock }: Lane, error: NotTaken, elapsedMs: number) {
  const at = isoTime(clock.now());
  const { failing_since = at, failing_ms = 0, ...rest } = progress();
  const failing = { failing_since, failing_ms: Math.round(failing_ms + elapsedMs) };
  onProgress({ ...rest, ...failing, last_error: { message: error.message, at } });
  return failing;
}

async function giveUp(lane: Lane, reason: 'failing' | 'gone'): Promise<void> {
  const { webhook_id, account_id } = lane.row;
  await lane.giveUp(lane.row, reason);
  const { failing_since, last_error } = lane.progress();
  lane.logger.warn(
    { webhook_id, account_id, reason, failing_since, last_error: last_error?.message },
    'a webhook was disabled: nothing is sent to it until its account enables it again',
  );
}

/** What a store or others' load brings, and takes away again. */
const PASSING = ['store_unavailable', 'rate_limited', 'overloaded'] as const;

/** What is not the receiver's doing is for operators. */
function noteTrouble({ row, onTrouble, onProgress, progress, logger }: Lane, error: unknown): void {
  const { webhook_id } = row;
  if (isRestored(error)) {
    const { cursor: _, ...rest } = progress();
    onProgress(rest);
    return logger.warn(
      { webhook_id },
      'the log was restored: everything since its creation is sent to the webhook again',
    );
  }
  const message = publicReason(error);
  if (!PASSING.some((code) => isTurnlogError(error, code)))
    logger.error({ ...errorSummary(error), webhook_id }, 'nothing can be sent to a webhook');
  onTrouble(message);
}

/**
 * Sends to one webhook until the signal: after a failure from the cursor on, with pauses that
 * grow, one message at a time until one is taken. What was tried in vain for a day is given up, and
 * so is a receiver that says it is gone.
 */
export async function runLane(lane: Lane): Promise<void> {
  const { signal } = lane;
  const pauses = createBackoff(PAUSES);
  const troubles = createBackoff(TROUBLES);
  let began = 0;
  let failedAt: number | undefined;
  /** From one failure to the next, where nothing of ours comes between them. */
  let expectedMs = 0;

  async function pauseAfter(error: unknown): Promise<number> {
    if (!(error instanceof NotTaken)) {
      if (performance.now() - began > STEADY_MS) troubles.reset();
      noteTrouble(lane, error);
      return troubles.next();
    }
    const { gone, retryAfterMs: asked = 0 } = error.outcome;
    if (lane.progress().failing_since === undefined) {
      pauses.reset();
      failedAt = undefined;
    }
    const now = performance.now();
    const { failing_ms } = noteFailure(lane, error, Math.min(now - (failedAt ?? now), expectedMs));
    failedAt = now;
    const pauseMs = Math.max(pauses.next(), Math.min(asked, retryAfterMs));
    expectedMs = pauseMs + answerMs;
    if (gone) await giveUp(lane, 'gone');
    else if (failing_ms >= failingMs) await giveUp(lane, 'failing');
    return pauseMs;
  }

  while (!signal.aborted) {
    try {
      began = performance.now();
      await deliver(lane, lane.progress().failing_since !== undefined);
      // What was followed has ended: this process ends, too.
      await sleepUntilAborted(firstPauseMs, { signal, ref: false });
    } catch (error) {
      if (signal.aborted) return;
      const ms = await pauseAfter(error).catch((reason: unknown) => {
        noteTrouble(lane, reason);
        return troubles.next();
      });
      await sleepUntilAborted(ms, { signal, ref: false });
    }
  }
}
