/** A message to a receiver; `secret` signs it. */
export interface WebhookMessage {
  url: string;
  secret: string;
  /** The same each time that the message is sent. */
  id: string;
  body: string;
  /** Ends the attempt. */
  signal: AbortSignal;
}

/** What became of an attempt. */
export type DeliveryOutcome =
  | { accepted: true }
  | {
      accepted: false;
      /** One sentence, without the address and what the receiver said. */
      reason: string;
      /** The receiver wants no message any more. */
      gone?: true;
      /** How long the receiver asks to be left alone, in milliseconds. */
      retryAfterMs?: number;
    };

/** Sends one message once. Errors: the signal's reason; whatever else happens is an outcome. */
export type WebhookSender = (message: WebhookMessage) => Promise<DeliveryOutcome>;
