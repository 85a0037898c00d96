import type { WebhookEvent } from './events.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { streamId } from '../eventlog/streams.ts';
import { requireAbsent, requirePresent, type RowChange } from '../projections/change.ts';
import type { RowsOf } from '../readModels/table.ts';
import type { WEBHOOK_TABLES } from './tables.ts';

type Rows = RowsOf<typeof WEBHOOK_TABLES>;
type WebhookRow = Rows['webhooks'];
type Change = RowChange<Rows>;

/** The changes that a later event makes to the row. */
function patch(event: Exclude<WebhookEvent, { type: 'webhook.created.v1' }>): Partial<WebhookRow> {
  switch (event.type) {
    case 'webhook.changed.v1':
      return { url: event.data.url, types: event.data.types ?? null };
    case 'webhook.enabled.v1':
      return { disabled: null };
    case 'webhook.disabled.v1':
      return { disabled: event.data.reason };
    case 'webhook.deleted.v1':
      return { deleted: true };
    case 'webhook.erased.v1':
      return { deleted: true, erased: true };
    default:
      return event satisfies never;
  }
}

/** Maps an event of a webhook's stream to changes of `webhooks`. */
export function projectWebhook(recorded: RecordedEvent, event: WebhookEvent): Change[] {
  const webhook_id = streamId(recorded.stream);
  const { revision, position } = recorded;
  const { account_id, recorded_at } = recorded.metadata;

  function change(row: WebhookRow | undefined): WebhookRow | undefined {
    if (event.type === 'webhook.created.v1') {
      requireAbsent(row, 'webhook');
      const { url, secret, types = null } = event.data;
      return {
        webhook_id,
        account_id,
        url,
        secret,
        types,
        disabled: null,
        created_at: recorded_at,
        updated_at: recorded_at,
        position,
        deleted: false,
        erased: false,
        revision,
      };
    }
    if (event.type === 'webhook.erased.v1' && !row) return undefined;
    return {
      ...requirePresent(row, 'webhook'),
      ...patch(event),
      updated_at: recorded_at,
      revision,
    };
  }

  return [{ table: 'webhooks', key: [webhook_id], change }];
}
