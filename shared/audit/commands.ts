import { audit } from './decider.ts';
import type { AuditData } from './events.ts';
import {
  isLogUnavailable,
  isTurnlogError,
  storeUnavailableError,
  TurnlogError,
} from '../lib/errors/turnlogError.ts';
import { auditStream } from '../eventlog/streams.ts';
import { runExclusive } from '../lib/concurrency/keyedMutex.ts';
import type { Actor } from '../commandHandling/context.ts';
import { handle, type HandleContext } from '../commandHandling/handle.ts';
import { lastEventTarget } from '../commandHandling/targetStream.ts';

const NOT_RECORDED = 'What was asked can be answered only once that is recorded in the audit.';

/**
 * A damaged audit is not reported as `store_unavailable`, because retrying would meet the same
 * damage.
 */
function notRecorded(error: unknown): TurnlogError {
  if (
    isLogUnavailable(error) ||
    isTurnlogError(error, 'event_invalid') ||
    isTurnlogError(error, 'quota_exceeded')
  )
    return error;
  return isTurnlogError(error, 'stream_damaged')
    ? new TurnlogError('stream_damaged', `${NOT_RECORDED} ${error.message}`, { cause: error.cause })
    : storeUnavailableError(NOT_RECORDED, error);
}

/**
 * Records that the actor read, proved, exported or erased recorded events. Callers respond only
 * after the promise resolves, so that nothing unrecorded is disclosed. Errors: `stream_damaged`
 * (noted), which names the audit; `store_unavailable`, `log_changed`, `quota_exceeded`,
 * `event_invalid` for a detail that is too long.
 */
export async function recordAudit(
  context: HandleContext,
  actor: Actor,
  audited: AuditData,
): Promise<void> {
  const target = lastEventTarget(auditStream(actor.account_id), audit);
  async function note(): Promise<void> {
    await handle(context, actor, target, { type: 'note', audited });
    // The stream accepts new entries, and no more of it is read here.
    context.damaged.clear(target.stream, { from: 0, to: Infinity });
  }
  try {
    await runExclusive(context.store, actor.account_id, note);
  } catch (error) {
    throw notRecorded(error);
  }
}
