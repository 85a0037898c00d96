import type { Static } from 'typebox';
import type { ShownWebhook } from '../../../shared/webhooks/queries.ts';
import type { Webhook } from './schemas.ts';

/** The age of the oldest undelivered event; null while it is unknown. */
function lagOf(progress: ShownWebhook['progress'], now: number): number | null {
  if (!progress) return null;
  const { oldest_at } = progress;
  return oldest_at === undefined ? 0 : Math.max(0, Math.round(now - Date.parse(oldest_at)));
}

/** A webhook and its progress, without its secret. `now` is in milliseconds since the epoch. */
export function presentWebhook(
  { row, url, progress }: ShownWebhook,
  now: number,
): Static<typeof Webhook> {
  const { webhook_id, types, disabled, created_at, updated_at, revision } = row;
  // Failures before the last change of the webhook no longer apply.
  const failing_since = progress?.revision === revision ? progress.failing_since : undefined;
  return {
    webhook_id,
    url,
    types,
    created_at,
    updated_at,
    revision,
    state: disabled ? 'disabled' : failing_since === undefined ? 'active' : 'failing',
    ...(disabled && { disabled_reason: disabled }),
    failing_since: failing_since ?? null,
    last_error: progress?.last_error ?? null,
    delivered_at: progress?.delivered_at ?? null,
    position: progress?.cursor ?? null,
    lag_ms: lagOf(progress, now),
  };
}
