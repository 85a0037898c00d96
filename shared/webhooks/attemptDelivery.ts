import { isoTime, type Clock } from '../ports/clock.ts';
import type { DeliveryAttempt } from './webhookProgress.ts';
import type { DeliveryOutcome, WebhookMessage, WebhookSender } from './webhookSender.ts';

/** Sends a message once, and describes the attempt. Throws only the abort reason. */
export async function attemptDelivery(
  { send, clock }: { send: WebhookSender; clock: Clock },
  message: WebhookMessage,
  type: string,
): Promise<{ outcome: DeliveryOutcome; attempt: DeliveryAttempt }> {
  const at = isoTime(clock.now());
  const startedAt = performance.now();
  const outcome = await send(message);
  const attempt = {
    at,
    message_id: message.id,
    type,
    status: outcome.status ?? null,
    error: outcome.accepted ? null : outcome.reason,
    duration_ms: Math.round(performance.now() - startedAt),
  };
  return { outcome, attempt };
}
