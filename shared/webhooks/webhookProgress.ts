/** One attempt to send a message. */
export interface DeliveryAttempt {
  /** When it began: UTC in ISO 8601. */
  at: string;
  /** The id of the message, which every attempt to send it has. */
  message_id: string;
  /** The type of the event. */
  type: string;
  /** HTTP status of the response; null without a response. */
  status: number | null;
  /** One sentence on why the message was not accepted; null if it was. */
  error: string | null;
  duration_ms: number;
}

/**
 * The delivery progress of webhooks. It is stored outside the log and survives restarts. If it is
 * lost, all events since the webhook's creation are sent again. Every adapter passes
 * test/contracts/webhookProgress.ts.
 */
export interface WebhookProgress {
  /** Cursor in the account's feed: every event up to here is delivered. Absent before the first. */
  cursor?: string;
  /** When the last message was accepted. Instants are UTC in ISO 8601. */
  delivered_at?: string;
  /** Start of the current failures; absent while deliveries succeed. */
  failing_since?: string;
  /**
   * Duration of the current failures, counting only the time of running processes, in milliseconds.
   */
  failing_ms?: number;
  /** Time and one-sentence description of the last failure. */
  last_error?: { message: string; at: string };
  /** The last attempts, oldest first. */
  attempts?: readonly DeliveryAttempt[];
  /** When the oldest event known to be pending was recorded. */
  oldest_at?: string;
  /** Revision of the webhook's stream to which this progress applies. */
  revision: number;
}

/** Progress by webhook id; undefined deletes it. */
export type WebhookChanges = ReadonlyMap<string, WebhookProgress | undefined>;

/** The part of the port for queries. */
export interface WebhookProgressReader {
  /** Errors: `store_unavailable`. */
  find(webhookId: string): Promise<WebhookProgress | undefined>;
}

/** The part of the port for delivery, which only one process holds at a time. */
export interface WebhookProgressStore {
  /** All stored progress. Errors: `store_unavailable`. */
  load(): Promise<Map<string, WebhookProgress>>;
  /**
   * Durable when the promise resolves. Errors: `store_unavailable`; the changes may then be saved
   * in part.
   */
  save(changes: WebhookChanges): Promise<void>;
  /** Aborts when another process may deliver. */
  lost: AbortSignal;
  close(): Promise<void>;
}
