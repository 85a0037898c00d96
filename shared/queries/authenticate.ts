import { claimedKeyId, hashApiKey, sameHash } from '../apiKey.ts';
import type { Scope } from '../domain/account/events.ts';
import { TurnlogError } from '../errors.ts';
import type { ReadModels } from '../ports/readModels.ts';

interface Principal {
  account_id: string;
  key_id: string;
  scopes: readonly Scope[];
}

/**
 * Compared against when no such key exists, so that an unknown key takes as long as a wrong one.
 */
const NO_HASH = hashApiKey('');

const isExpired = (expiresAt: string | null, now: number): boolean =>
  expiresAt !== null && Date.parse(expiresAt) <= now;

/**
 * Who presents this key. Errors: `unauthorized` for a missing, unknown, wrong, revoked or expired
 * key, one answer for all.
 */
export async function authenticate(
  readModels: Pick<ReadModels, 'findApiKey'>,
  apiKey: string | undefined,
  now: number,
): Promise<Principal> {
  const presented = apiKey ?? '';
  const key = await readModels.findApiKey(claimedKeyId(presented));
  const matches = sameHash(key?.hash ?? NO_HASH, hashApiKey(presented));
  if (!key || !matches || key.revoked_at !== null || isExpired(key.expires_at, now))
    throw new TurnlogError(
      'unauthorized',
      'The x-api-key header is missing or holds no valid API key.',
    );
  return { account_id: key.account_id, key_id: key.key_id, scopes: key.scopes };
}

/** Errors: `forbidden` when the key lacks the scope. */
export function requireScope(principal: Principal, scope: Scope): void {
  if (!principal.scopes.includes(scope))
    throw new TurnlogError('forbidden', `This API key lacks the scope ${scope}.`);
}
