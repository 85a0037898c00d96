import type { Page, PageOf } from '../readModels/page.ts';
import type { Listing, SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { WebhookRow } from '../readModels/tables.ts';

export interface EnabledWebhooks {
  rows: WebhookRow[];
  next: string | undefined;
}

/** Queries for webhooks, part of the read models port. */
export interface WebhookQueries {
  /** By id alone, including deleted and erased webhooks; the caller checks the account. */
  findWebhook(webhookId: string): Promise<WebhookRow | undefined>;
  /** Oldest first. Excludes erased webhooks, and deleted ones unless requested. */
  listWebhooks(accountId: string, page: Page & { deleted?: true }): Promise<PageOf<WebhookRow>>;
  /**
   * The enabled webhooks of all accounts with later ids than `after`, oldest first. `next` is the
   * `after` of the next rows, if there may be more.
   */
  listEnabledWebhooks(after: string, limit: number): Promise<EnabledWebhooks>;
}

const LISTING: Listing<'webhooks'> = {
  table: 'webhooks',
  key: 'webhook_id',
  where: 'account_id = ? AND NOT deleted',
};

export function createWebhookQueries({ find, list, page }: SqlDatabase): WebhookQueries {
  const listed = page(LISTING);
  const withDeleted = page({ ...LISTING, where: 'account_id = ? AND NOT erased' });
  const listEnabled = list(
    'webhooks',
    'WHERE disabled IS NULL AND NOT deleted AND webhook_id > ? ORDER BY webhook_id LIMIT ?',
  );
  return {
    findWebhook: find('webhooks', 'WHERE webhook_id = ?'),
    listWebhooks: (accountId, { deleted, ...bounds }) =>
      (deleted ? withDeleted : listed)([accountId], bounds),
    async listEnabledWebhooks(after, limit) {
      const rows = await listEnabled(after, limit);
      return { rows, next: rows.length < limit ? undefined : rows.at(-1)?.webhook_id };
    },
  };
}
