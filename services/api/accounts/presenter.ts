import type { Static } from 'typebox';
import { isActiveKey } from '../../../shared/accounts/keyRules.ts';
import type { IssuedKey } from '../../../shared/accounts/manageKeys.ts';
import type { OpenedAccount } from '../../../shared/accounts/openManagedAccount.ts';
import type { AccountRow, ApiKeyRow } from '../../../shared/readModels/tables.ts';
import type * as schemas from './schemas.ts';

/** Without its hash. */
const presentGrant = ({ key_id, name, scopes, issued_at, issued_by, expires_at }: ApiKeyRow) => ({
  key_id,
  name,
  scopes: [...scopes],
  issued_at,
  issued_by,
  expires_at,
});

/** A key with its state at `now`, in milliseconds since the epoch. */
export function presentKey(row: ApiKeyRow, now: number): Static<typeof schemas.ApiKey> {
  const { revoked_at, revoked_by, replaced_by, expires_at } = row;
  const isActive = isActiveKey({ revoked: revoked_at !== null, expires_at }, now);
  const state = isActive ? 'active' : revoked_at === null ? 'expired' : 'revoked';
  return { ...presentGrant(row), state, replaced_by, revoked_at, revoked_by };
}

/** A key with the key itself, where it may be shown. */
export const presentIssuedKey = ({
  row,
  api_key,
}: IssuedKey): Static<typeof schemas.IssuedKey> => ({ ...presentGrant(row), api_key });

export const presentAccount = ({
  account_id,
  name,
  opened_at,
}: Pick<AccountRow, 'account_id' | 'name' | 'opened_at'>): Static<typeof schemas.Account> => ({
  account_id,
  name,
  opened_at,
});

export const presentOpenedAccount = (
  opened: OpenedAccount,
): Static<typeof schemas.OpenedAccount> => ({
  ...presentAccount(opened),
  key: presentIssuedKey(opened.key),
});
