import { defineStream, erasureOf, type Feature } from '../domain/feature.ts';
import { account } from './decider.ts';
import { accountEventSchemas } from './events.ts';
import { KEY_LIMITS } from './limits.ts';
import { projectAccount } from './projection.ts';
import { ACCOUNT_TABLES } from './tables.ts';

export const accounts = {
  stream: defineStream('account', accountEventSchemas, {
    opening: 'account.opened.v1',
    alwaysRecorded: [
      'account.opened.v1',
      'account.key_revoked.v1',
      'account.limits_set.v1',
      'account.retention_set.v1',
      'account.hold_set.v1',
    ],
    project: projectAccount,
    table: 'accounts',
    erasure: erasureOf(
      account,
      ({ reason: _reason, ...data }) => ({ type: 'erase_account', ...data }),
      ({ reason: _reason, ...data }) => ({ type: 'account.erased.v1', data }),
    ),
  }),
  tables: ACCOUNT_TABLES,
  errors: [
    'key_not_found',
    'key_inactive',
    'key_limit_reached',
    'last_key',
    'account_limit_reached',
  ],
  limits: KEY_LIMITS,
  owners: { api_keys: 'account_id' },
} as const satisfies Feature;
