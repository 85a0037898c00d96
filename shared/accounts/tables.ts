import {
  boolean,
  integer,
  json,
  orNull,
  protectedColumn,
  table,
  text,
} from '../readModels/table.ts';
import type { AccountHold, AccountLimits, AccountRetention, Scope } from './events.ts';

export const ACCOUNT_TABLES = {
  accounts: table({
    columns: {
      account_id: text,
      name: protectedColumn(text, ''),
      opened_at: text,
      limits: json<AccountLimits>(),
      retention: json<AccountRetention>(),
      hold: json<AccountHold>(),
      erased: boolean,
      revision: integer,
    },
    key: ['account_id'],
  }),

  api_keys: table({
    columns: {
      key_id: text,
      account_id: text,
      name: text,
      hash: text,
      scopes: json<Scope[]>(),
      issued_at: text,
      /** The id of the key that issued this one, or `operator`. */
      issued_by: text,
      expires_at: orNull(text),
      replaced_by: orNull(text),
      revoked_at: orNull(text),
      revoked_by: orNull(text),
      revision: integer,
    },
    key: ['key_id'],
    indexes: [{ on: ['account_id', 'key_id'] }, { on: ['hash'] }],
  }),
};
