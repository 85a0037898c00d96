-- How far the events of each account are sent to its webhooks, as JSON (shared/webhooks/webhookProgress.ts). Whoever loses it sends
-- everything since a webhook's creation again.
CREATE TABLE turnlog.webhook_progress (
  webhook_id text PRIMARY KEY,
  progress jsonb NOT NULL
);
