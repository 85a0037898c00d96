import type { Page, PageOf } from '../readModels/page.ts';
import type { Listing, SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { AccountRow, ApiKeyRow } from '../readModels/tables.ts';

/** Queries for accounts and API keys, part of the read models port. */
export interface AccountQueries {
  /** Excludes erased accounts. */
  listAccounts(): Promise<AccountRow[]>;
  /** The same by page, oldest first. */
  pageAccounts(page: Page): Promise<PageOf<AccountRow>>;
  /** Includes erased accounts. */
  countAccounts(): Promise<number>;
  findAccount(accountId: string): Promise<AccountRow | undefined>;
  findApiKey(keyId: string): Promise<ApiKeyRow | undefined>;
  /** The key with this hash. If two accounts have it, the one with the lowest id. */
  findApiKeyByHash(hash: string): Promise<ApiKeyRow | undefined>;
  /** Oldest first; only those that are valid at `activeAt`, an instant, if it is given. */
  listApiKeys(accountId: string, page: Page & { activeAt?: string }): Promise<PageOf<ApiKeyRow>>;
  /** True once any key was issued, including revoked keys and keys of erased accounts. */
  hasApiKeys(): Promise<boolean>;
}

const ACCOUNTS: Listing<'accounts'> = {
  table: 'accounts',
  key: 'account_id',
  where: 'NOT erased',
};
const KEYS: Listing<'api_keys'> = { table: 'api_keys', key: 'key_id', where: 'account_id = ?' };
const ACTIVE_KEYS: Listing<'api_keys'> = {
  ...KEYS,
  where: 'account_id = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)',
};

export function createAccountQueries({ query, find, list, page }: SqlDatabase): AccountQueries {
  // Erasing an account deletes its keys, so an erased account counts as well.
  const issuedKey = query(
    'SELECT 1 AS issued FROM {api_keys} UNION ALL SELECT 1 AS issued FROM {accounts} WHERE erased LIMIT 1',
  );
  const accountCount = query<{ count: number | string }>(
    'SELECT count(*) AS count FROM {accounts}',
  );
  const accounts = page(ACCOUNTS);
  const [keys, activeKeys] = [page(KEYS), page(ACTIVE_KEYS)];
  return {
    pageAccounts: (bounds) => accounts([], bounds),
    countAccounts: async () => Number((await accountCount())[0]!.count),
    listAccounts: list('accounts', 'WHERE NOT erased ORDER BY account_id'),
    findAccount: find('accounts', 'WHERE account_id = ?'),
    findApiKey: find('api_keys', 'WHERE key_id = ?'),
    findApiKeyByHash: find('api_keys', 'WHERE hash = ? ORDER BY key_id LIMIT 1'),
    listApiKeys: (accountId, { activeAt, ...bounds }) =>
      activeAt === undefined
        ? keys([accountId], bounds)
        : activeKeys([accountId, activeAt], bounds),
    hasApiKeys: async () => (await issuedKey()).length > 0,
  };
}
