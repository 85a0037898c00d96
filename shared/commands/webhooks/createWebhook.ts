import { randomBytes } from 'node:crypto';
import { webhook } from '../../domain/webhook/decider.ts';
import { TurnlogError } from '../../errors.ts';
import { webhookStream } from '../../eventlog/streams.ts';
import { inLine } from '../../inLine.ts';
import { LIMITS } from '../../limits.ts';
import { untilShown, type Actor, type CommandContext } from '../context.ts';
import { handle } from '../handle.ts';
import { newStream } from '../target.ts';
import { requireWebhookUrl } from './webhookUrl.ts';

/** What commands on webhooks work with. */
export type WebhookContext = CommandContext & { webhooks: { allowPrivate: boolean } };

export interface CreatedWebhook {
  webhook_id: string;
  url: string;
  types: string[] | null;
  secret: string;
  created_at: string;
}

/** As Standard Webhooks writes it; 256 random bits. */
const mintSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** Errors: `webhook_limit_reached`. */
async function requireRoom({ readModels }: WebhookContext, accountId: string): Promise<void> {
  const limit = LIMITS.webhooks.ofAccount;
  const { rows } = await readModels.listWebhooks(accountId, { limit, bytes: Infinity });
  if (rows.length >= limit)
    throw new TurnlogError(
      'webhook_limit_reached',
      `The account has ${limit} webhooks, and may have no more: delete one.`,
    );
}

/**
 * Creates a webhook of the actor's account, to which all later events are sent, of these types where
 * some are named. Its secret is shown this once.
 * Errors: `invalid_request` (the address), `webhook_limit_reached`, those of handle.
 */
export function createWebhook(
  context: WebhookContext,
  actor: Actor,
  input: { url: string; types?: string[] },
): Promise<CreatedWebhook> {
  const url = requireWebhookUrl(input.url, context.webhooks.allowPrivate);
  const types = input.types;
  // One after the other, so that each sees the one before in the read models.
  return inLine(context.readModels, actor.account_id, async () => {
    await requireRoom(context, actor.account_id);
    const webhook_id = context.ids.typeId('webhook');
    const secret = mintSecret();
    const settings = { url, ...(types && { types }) };
    const command = { type: 'create_webhook', settings, secret } as const;
    const target = newStream(webhookStream(webhook_id), webhook);
    const { position, recorded_at } = (await handle(context, actor, target, command))!;
    await untilShown(context, position);
    return { webhook_id, url, types: types ?? null, secret, created_at: recorded_at };
  });
}
