import type { SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { AccountRow, ApiKeyRow } from '../readModels/tables.ts';

/** Queries for accounts and API keys, part of the read models port. */
export interface AccountQueries {
  /** Excludes erased accounts. */
  listAccounts(): Promise<AccountRow[]>;
  findAccount(accountId: string): Promise<AccountRow | undefined>;
  findApiKey(keyId: string): Promise<ApiKeyRow | undefined>;
  /** The key with this hash. If two accounts have it, the one with the lowest id. */
  findApiKeyByHash(hash: string): Promise<ApiKeyRow | undefined>;
  /** Oldest first. */
  listApiKeys(accountId: string): Promise<ApiKeyRow[]>;
  /** True once any key was issued, including revoked keys and keys of erased accounts. */
  hasApiKeys(): Promise<boolean>;
}

export function createAccountQueries({ query, find, list }: SqlDatabase): AccountQueries {
  // Erasing an account deletes its keys, so an erased account counts as well.
  const issuedKey = query(
    'SELECT 1 AS issued FROM {api_keys} UNION ALL SELECT 1 AS issued FROM {accounts} WHERE erased LIMIT 1',
  );
  return {
    listAccounts: list('accounts', 'WHERE NOT erased ORDER BY account_id'),
    findAccount: find('accounts', 'WHERE account_id = ?'),
    findApiKey: find('api_keys', 'WHERE key_id = ?'),
    findApiKeyByHash: find('api_keys', 'WHERE hash = ? ORDER BY key_id LIMIT 1'),
    listApiKeys: list('api_keys', 'WHERE account_id = ? ORDER BY key_id'),
    hasApiKeys: async () => (await issuedKey()).length > 0,
  };
}
