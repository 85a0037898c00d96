/**
 * How far webhooks are: beside the log, and kept over restarts. Whoever loses it sends everything
 * since the webhook's creation again. Every adapter passes test/contracts/webhookProgress.ts.
 */
export interface WebhookProgress {
  /** Of the account's feed: everything up to here is delivered; absent before the first. */
  cursor?: string;
  /** When the last message was taken; instants are UTC, ISO 8601. */
  delivered_at?: string;
  /** Since when nothing could be delivered; absent while all is well. */
  failing_since?: string;
  /** How long it was tried since, in milliseconds of running processes. */
  failing_ms?: number;
  /** One sentence on the last failure, and when that was. */
  last_error?: { message: string; at: string };
  /** When the oldest event was recorded that is known to wait. */
  oldest_at?: string;
  /** Of the webhook's stream, when this was so. */
  revision: number;
}

/** By the ids of webhooks; undefined for one of which nothing is kept any more. */
export type WebhookChanges = ReadonlyMap<string, WebhookProgress | undefined>;

/** What queries ask. */
export interface WebhookProgressReader {
  /** Errors: `store_unavailable`. */
  find(webhookId: string): Promise<WebhookProgress | undefined>;
}

/** The half of whoever delivers: one process at a time. */
export interface WebhookProgressStore {
  /** All that is kept. Errors: `store_unavailable`. */
  load(): Promise<Map<string, WebhookProgress>>;
  /** Durable when it resolves. Errors: `store_unavailable`; nothing, or some of it, is kept then. */
  save(changes: WebhookChanges): Promise<void>;
  /** Aborted when another process may deliver. */
  lost: AbortSignal;
  close(): Promise<void>;
}
