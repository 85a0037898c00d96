import type { Position } from '../ports/eventStore.ts';
import {
  boolean,
  integer,
  json,
  orNull,
  protectedColumn,
  table,
  text,
  word,
} from '../readModels/table.ts';
import type { DisabledReason } from './events.ts';

export const WEBHOOK_TABLES = {
  webhooks: table({
    columns: {
      webhook_id: text,
      account_id: text,
      /** Encrypted as in the log, like the secret. */
      url: protectedColumn(text, ''),
      secret: protectedColumn(text, ''),
      /** Event types to send; null for all. */
      types: orNull(json<string[]>()),
      /** Why nothing is sent; null while the webhook is enabled. */
      disabled: orNull(word<DisabledReason>()),
      created_at: text,
      updated_at: text,
      /** Position of the webhook's first event. Only later events are sent. */
      position: word<Position>(),
      deleted: boolean,
      erased: boolean,
      revision: integer,
    },
    key: ['webhook_id'],
    indexes: [
      { on: ['account_id', 'webhook_id'], where: 'NOT deleted' },
      { on: ['account_id', 'webhook_id'], where: 'NOT erased' },
      { on: ['webhook_id'], where: 'disabled IS NULL AND NOT deleted' },
    ],
  }),
};
