import { scopesOf, type AccountEvent } from './events.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { streamId } from '../eventlog/streams.ts';
import { requireAbsent, requirePresent, type RowChange } from '../projections/change.ts';
import type { RowsOf } from '../readModels/table.ts';
import type { ACCOUNT_TABLES } from './tables.ts';

type Change = RowChange<RowsOf<typeof ACCOUNT_TABLES>>;

/**
 * Updates the account's own row for every event of its stream, so that a key of an account that was
 * never opened is refused.
 */
const follow = (account_id: string, revision: number): Change => ({
  table: 'accounts',
  key: [account_id],
  change: (row) => ({ ...requirePresent(row, 'account'), revision }),
});

/** Maps an event of an account's stream to changes of `accounts` and `api_keys`. */
export function projectAccount(recorded: RecordedEvent, event: AccountEvent): Change[] {
  const account_id = streamId(recorded.stream);
  const { revision } = recorded;
  const { recorded_at: at, key_id: author } = recorded.metadata;
  switch (event.type) {
    case 'account.opened.v1':
      return [
        {
          table: 'accounts',
          key: [account_id],
          change: (row) => {
            requireAbsent(row, 'account');
            return {
              account_id,
              name: event.data.name,
              opened_at: at,
              limits: {},
              retention: {},
              hold: { held: false },
              erased: false,
              revision,
            };
          },
        },
      ];
    case 'account.key_issued.v1':
      return [
        follow(account_id, revision),
        {
          table: 'api_keys',
          key: [event.data.key_id],
          change: (row) => {
            requireAbsent(row, 'API key');
            const { key_id, name, hash, expires_at } = event.data;
            return {
              key_id,
              account_id,
              name,
              hash,
              scopes: scopesOf(event.data),
              issued_at: at,
              issued_by: author,
              expires_at,
              replaced_by: null,
              revoked_at: null,
              revoked_by: null,
              revision,
            };
          },
        },
      ];
    case 'account.key_revoked.v1':
      return [
        follow(account_id, revision),
        {
          table: 'api_keys',
          key: [event.data.key_id],
          change: (row) => ({
            ...requirePresent(row, 'API key'),
            revoked_at: at,
            revoked_by: author,
            revision,
          }),
        },
      ];
    case 'account.key_rotated.v1': {
      const { key_id, replaced_by, expires_at } = event.data;
      return [
        follow(account_id, revision),
        {
          table: 'api_keys',
          key: [key_id],
          change: (row) => ({
            ...requirePresent(row, 'API key'),
            replaced_by,
            expires_at,
            revision,
          }),
        },
      ];
    }
    case 'account.limits_set.v1':
      return [
        {
          table: 'accounts',
          key: [account_id],
          change: (row) => ({ ...requirePresent(row, 'account'), limits: event.data, revision }),
        },
      ];
    case 'account.retention_set.v1':
      return [
        {
          table: 'accounts',
          key: [account_id],
          change: (row) => ({ ...requirePresent(row, 'account'), retention: event.data, revision }),
        },
      ];
    case 'account.hold_set.v1':
      return [
        {
          table: 'accounts',
          key: [account_id],
          change: (row) => ({ ...requirePresent(row, 'account'), hold: event.data, revision }),
        },
      ];
    case 'account.erased.v1':
      return [
        {
          table: 'accounts',
          key: [account_id],
          change: (row) => row && { ...row, erased: true, revision },
        },
      ];
    default:
      return event satisfies never;
  }
}
