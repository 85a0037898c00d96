import { holdsWebhookState, webhook, type WebhookChange, type WebhookCommand } from './decider.ts';
import type { DisabledReason } from './events.ts';
import { isRejection } from '../domain/rejection.ts';
import { webhookStream } from '../eventlog/streams.ts';
import { runExclusiveFairly } from '../lib/concurrency/keyedMutex.ts';
import { requireOwnWebhook, webhookNotFoundError } from './queries.ts';
import type { WebhookRow } from '../readModels/tables.ts';
import { waitUntilVisible, type Actor } from '../commandHandling/context.ts';
import {
  handleLoaded,
  requireRevision,
  type AuthoredCommand,
  type HandleContext,
} from '../commandHandling/handle.ts';
import { authorOf } from '../commandHandling/prepareEvents.ts';
import { lastEventTarget } from '../commandHandling/targetStream.ts';
import type { WebhookContext } from './createWebhook.ts';
import { requireWebhookUrl } from './webhookUrl.ts';

/** A merge patch (RFC 7396) of a webhook, which is enabled by default. */
type WebhookPatch = Omit<WebhookChange, 'enabled'> & { enabled?: boolean | null };

/** The webhook to change. */
export interface ChangedWebhook {
  webhook_id: string;
  /** The revisions that the client accepts (If-Match); any if absent. */
  expected?: readonly number[] | undefined;
}

/** The caller has found the webhook to be the account's. */
async function handleWebhookCommand(
  context: WebhookContext,
  actor: Actor,
  { webhook_id, expected }: ChangedWebhook,
  command: WebhookCommand,
): Promise<void> {
  const target = lastEventTarget(webhookStream(webhook_id), webhook, holdsWebhookState);
  try {
    // One after the other, because concurrent changes would only conflict and be decided again.
    const lock = { owner: context.store, key: target.stream, account_id: actor.account_id };
    const { loaded, appended = loaded.last } = await runExclusiveFairly(lock, () =>
      handleLoaded(context, target, ({ head }) => {
        requireRevision(expected, head, 'webhook');
        return { author: authorOf(actor), command };
      }),
    );
    // An equal change that another request has just made may not be visible yet.
    if (appended) await waitUntilVisible(context, appended.position);
  } catch (error) {
    // Another request deleted the webhook in the meantime.
    throw isRejection(error, 'webhook_missing') ? webhookNotFoundError() : error;
  }
}

/**
 * Changes the settings of the account's webhook, or enables or disables it. The change is visible
 * when the promise resolves. Errors: `webhook_not_found`, `precondition_failed`, `invalid_request` (the address), those of
 * handle.
 */
export async function changeWebhook(
  context: WebhookContext,
  actor: Actor,
  target: ChangedWebhook,
  { enabled, ...change }: WebhookPatch,
): Promise<void> {
  // Not looked up for a webhook that the account does not have.
  await requireOwnWebhook(context, actor.account_id, target.webhook_id);
  const url =
    change.url === undefined
      ? {}
      : { url: await requireWebhookUrl(context.webhooks, actor.account_id, change.url) };
  const switched = enabled === undefined ? {} : { enabled: enabled ?? true };
  const command = { type: 'change_webhook', change: { ...change, ...url, ...switched } } as const;
  await handleWebhookCommand(context, actor, target, command);
}

/**
 * Deletes the account's webhook. Nothing more is sent to it. Errors: `webhook_not_found`,
 * `precondition_failed`, those of handle.
 */
export async function deleteWebhook(
  context: WebhookContext,
  actor: Actor,
  target: ChangedWebhook,
): Promise<void> {
  await requireOwnWebhook(context, actor.account_id, target.webhook_id);
  await handleWebhookCommand(context, actor, target, { type: 'delete_webhook' });
}

/**
 * Disables a webhook whose deliveries keep failing, unless it has changed since the last attempt.
 * Errors: those of handle.
 */
export async function disableFailingWebhook(
  context: HandleContext,
  { webhook_id, account_id, revision }: WebhookRow,
  reason: DisabledReason,
): Promise<void> {
  const target = lastEventTarget(webhookStream(webhook_id), webhook, holdsWebhookState);
  const authored: AuthoredCommand<WebhookCommand> = {
    author: authorOf({ account_id, key_id: 'system', request_id: 'webhooks' }),
    command: { type: 'disable_webhook', reason },
  };
  await handleLoaded(context, target, ({ head }) =>
    head.revision === revision ? authored : undefined,
  );
}
