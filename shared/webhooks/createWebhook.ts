import { randomBytes } from 'node:crypto';
import { webhook } from './decider.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { findFirstEvent } from '../eventlog/reading/readWhole.ts';
import { webhookStream } from '../eventlog/streams.ts';
import { runExclusiveFairly } from '../lib/concurrency/keyedMutex.ts';
import { LIMITS } from '../limits.ts';
import { waitUntilVisible, type Actor, type CommandContext } from '../commandHandling/context.ts';
import { handle } from '../commandHandling/handle.ts';
import { type Claim, createOnce } from '../requests/idempotency.ts';
import { newStreamTarget } from '../commandHandling/targetStream.ts';
import { requireWebhookUrl, type AddressRules } from './webhookUrl.ts';

/** Dependencies of the webhook commands. */
export type WebhookContext = CommandContext & { webhooks: AddressRules };

interface CreatedWebhook {
  webhook_id: string;
  url: string;
  types: string[] | null;
  secret: string;
  created_at: string;
}

/** 256 random bits in the format of Standard Webhooks. */
const mintSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** Throws `webhook_limit_reached`. */
async function requireRoom({ readModels }: WebhookContext, accountId: string): Promise<void> {
  const limit = LIMITS.webhooks.ofAccount;
  const page = { limit, bytes: LIMITS.http.pageBytes };
  const { rows } = await readModels.listWebhooks(accountId, page);
  if (rows.length >= limit)
    throw new TurnlogError(
      'webhook_limit_reached',
      `The account has ${limit} webhooks, and may have no more: delete one.`,
    );
}

interface WebhookInput {
  url: string;
  types?: string[];
}

/** The normalized address. Errors: `invalid_request`, `webhook_limit_reached`. */
export async function prepareWebhookUrl(
  context: WebhookContext,
  { account_id }: Pick<Actor, 'account_id'>,
  { url }: WebhookInput,
): Promise<string> {
  const checked = await requireWebhookUrl(context.webhooks, account_id, url);
  await requireRoom(context, account_id);
  return checked;
}

/** The webhook that an earlier attempt of the request created, if any. */
async function findCreatedWebhook(
  context: WebhookContext,
  webhook_id: string,
): Promise<CreatedWebhook | undefined> {
  const created = await findFirstEvent(context, webhookStream(webhook_id));
  if (created?.event.type !== 'webhook.created.v1') return undefined;
  const { recorded, event } = created;
  await waitUntilVisible(context, recorded.position);
  const { url, types, secret } = event.data;
  const created_at = recorded.metadata.recorded_at;
  return { webhook_id, url, types: types ?? null, secret, created_at };
}

/**
 * Creates a webhook of the actor's account. All later events are sent to it, or only those of the
 * given types. The response contains its secret, and so do the responses to retries of the same
 * request. Errors: `invalid_request` (the address), `webhook_limit_reached`, those of handle.
 */
export function createWebhook(
  context: WebhookContext,
  actor: Actor,
  { types, ...input }: WebhookInput,
  claim?: Claim<string>,
): Promise<CreatedWebhook> {
  const webhook_id = claim?.reserved.id ?? context.ids.typeId('webhook');
  // Webhooks are created one at a time, so that each creation sees the previous one in the read
  // models.
  const create = async (): Promise<CreatedWebhook> => {
    const url =
      claim?.prepared ?? (await requireWebhookUrl(context.webhooks, actor.account_id, input.url));
    const { account_id } = actor;
    const lock = { owner: context.readModels, key: account_id, account_id };
    return runExclusiveFairly(lock, async () => {
      await requireRoom(context, account_id);
      const secret = mintSecret();
      const settings = { url, ...(types && { types }) };
      const command = { type: 'create_webhook', settings, secret } as const;
      const target = newStreamTarget(webhookStream(webhook_id), webhook);
      const { position, recorded_at } = (await handle(context, actor, target, command))!;
      await waitUntilVisible(context, position);
      return { webhook_id, url, types: types ?? null, secret, created_at: recorded_at };
    });
  };
  const before = () => findCreatedWebhook(context, webhook_id);
  return createOnce(context, claim, { findExisting: before, create });
}
