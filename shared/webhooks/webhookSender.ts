import { isoTime, type Clock } from '../ports/clock.ts';
import type { PermitPool } from '../lib/concurrency/capacity.ts';
import type { DeliveryAttempt } from './webhookProgress.ts';

/** A message for a receiver, signed with `secret`. */
export interface WebhookMessage {
  url: string;
  secret: string;
  /** Identical in every attempt to send this message. */
  id: string;
  body: string;
  /** Ends the attempt. */
  signal: AbortSignal;
}

/** The host of an address has no address, or one that is not of the public internet. */
export type UnreachableReason = 'unknown_name' | 'not_public';

/** The result of an attempt. */
export type DeliveryOutcome =
  | { accepted: true; status: number }
  | {
      accepted: false;
      /** HTTP status of the response; absent without a response. */
      status?: number;
      /** One sentence without the address or the content of the response. */
      reason: string;
      /** True when the receiver wants no further messages. */
      gone?: true;
      /** The pause that the receiver requests, in milliseconds. */
      retryAfterMs?: number;
    };

/**
 * Makes one attempt to send a message. Throws only the abort reason; every other failure is an
 * outcome.
 */
export type WebhookSender = (message: WebhookMessage) => Promise<DeliveryOutcome>;

/** How test messages are sent. */
export interface WebhookTests {
  send: WebhookSender;
  /** Permits of test messages in flight. */
  permits: PermitPool;
}

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
