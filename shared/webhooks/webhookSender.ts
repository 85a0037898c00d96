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
      /** How long the receiver asks to pause, in milliseconds. */
      retryAfterMs?: number;
    };

/**
 * Makes one attempt to send a message. Throws only the abort reason; every other failure is an
 * outcome.
 */
export type WebhookSender = (message: WebhookMessage) => Promise<DeliveryOutcome>;
