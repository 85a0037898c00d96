import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { createTextOpener } from '../eventlog/encryption/encryptedText.ts';
import type { ReadingKeys } from '../eventlog/encryption/keyring.ts';
import { isOwnStream } from '../eventlog/reading/streamOwner.ts';
import type { EventLog } from '../ports/eventStore.ts';
import { isIdOf, webhookStream } from '../eventlog/streams.ts';
import type { Page, PageOf, ReadModels } from '../ports/readModels.ts';
import type { WebhookProgress, WebhookProgressReader } from './webhookProgress.ts';
import type { WebhookTests } from './webhookSender.ts';
import type { AddressRules } from './webhookUrl.ts';
import type { WebhookRow } from '../readModels/tables.ts';

/** The same error for an unknown webhook and for one of another account. */
export const webhookNotFoundError = (): TurnlogError =>
  new TurnlogError('webhook_not_found', 'There is no such webhook.');

/** Dependencies for serving webhooks through the API. */
export interface ServedWebhooks extends AddressRules {
  tests: WebhookTests;
  progress: WebhookProgressReader;
}

/** A webhook with its address. */
export interface ShownWebhook {
  row: WebhookRow;
  url: string;
  progress: WebhookProgress | undefined;
}

interface Source {
  store: Pick<EventLog, 'readStream'> & { keys: ReadingKeys };
  readModels: Pick<ReadModels, 'findWebhook' | 'listWebhooks'>;
  webhooks: { progress: WebhookProgressReader };
}

type OwnSource = Pick<Source, 'readModels'> & { store: Pick<EventLog, 'readStream'> };

/** Decrypts the texts of a row. Throws `key_missing`, `store_unavailable` or BoxBroken. */
export async function textsOf(
  { store }: { store: { keys: ReadingKeys } },
  { webhook_id, url, secret }: WebhookRow,
): Promise<{ url: string; secret: string }> {
  const open = await createTextOpener(store.keys, webhookStream(webhook_id), [url, secret]);
  return { url: open(url), secret: open(secret) };
}

async function showWebhook(source: Source, row: WebhookRow): Promise<ShownWebhook> {
  const { url } = await textsOf(source, row);
  return { row, url, progress: await source.webhooks.progress.find(row.webhook_id) };
}

/** The account's webhook with this id, by its row and by the log. Errors: `webhook_not_found`, `store_unavailable`. */
export async function requireOwnWebhook(
  { readModels, store }: OwnSource,
  accountId: string,
  webhookId: string,
): Promise<WebhookRow> {
  const row = isIdOf('webhook', webhookId) ? await readModels.findWebhook(webhookId) : undefined;
  if (row?.account_id !== accountId || row.deleted) throw webhookNotFoundError();
  const isOwn = await isOwnStream({ store }, accountId, webhookStream(webhookId), async () => row);
  if (!isOwn) throw webhookNotFoundError();
  return row;
}

/**
 * The account's webhook with its progress. Errors: `webhook_not_found`, `key_missing`,
 * `store_unavailable`.
 */
export const readWebhook = async (
  source: Source,
  accountId: string,
  webhookId: string,
): Promise<ShownWebhook> =>
  showWebhook(source, await requireOwnWebhook(source, accountId, webhookId));

/** A page of the account's webhooks, oldest first. Errors: `key_missing`, `store_unavailable`. */
export async function listOwnWebhooks(
  source: Source,
  accountId: string,
  page: Page,
): Promise<PageOf<ShownWebhook>> {
  const { rows, more } = await source.readModels.listWebhooks(accountId, page);
  return { rows: await Promise.all(rows.map((row) => showWebhook(source, row))), more };
}
