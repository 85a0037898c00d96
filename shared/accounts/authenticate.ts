import { claimedKeyId, hashApiKey, hashesAreEqual } from './apiKey.ts';
import type { Scope } from './events.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { ReadModels } from '../ports/readModels.ts';

interface Principal {
  account_id: string;
  key_id: string;
  scopes: readonly Scope[];
}

/** Who presents a key; for a key that is not valid, the id of the one that was meant, if any. */
export interface Authentication {
  principal: Principal | undefined;
  key_id: string | undefined;
}

/**
 * Compared against when no such key exists, so that an unknown key takes as long as a wrong one.
 */
const NO_HASH = hashApiKey('');

const isExpired = (expiresAt: string | null, now: number): boolean =>
  expiresAt !== null && Date.parse(expiresAt) <= now;

/**
 * Who presents this key: no principal for one that is unknown, wrong, revoked or expired. One look
 * whatever it is, by the id that it claims; a key that an operator chose claims none, and is found
 * by its hash.
 */
export async function identifyKey(
  readModels: Pick<ReadModels, 'findApiKey' | 'findApiKeyByHash'>,
  apiKey: string,
  now: number,
): Promise<Authentication> {
  const claimed = claimedKeyId(apiKey);
  const hash = hashApiKey(apiKey);
  const key = await (claimed === undefined
    ? readModels.findApiKeyByHash(hash)
    : readModels.findApiKey(claimed));
  const matches = hashesAreEqual(key?.hash ?? NO_HASH, hash);
  if (!key || !matches || key.revoked_at !== null || isExpired(key.expires_at, now))
    return { principal: undefined, key_id: key?.key_id };
  const { account_id, key_id, scopes } = key;
  return { principal: { account_id, key_id, scopes }, key_id };
}

/** Whether a key that was valid still is, for who goes on with it for longer than a request. */
export async function isStillValid(
  readModels: Pick<ReadModels, 'findApiKey'>,
  keyId: string,
  now: number,
): Promise<boolean> {
  const key = await readModels.findApiKey(keyId);
  return key !== undefined && key.revoked_at === null && !isExpired(key.expires_at, now);
}

export function requireScope(scopes: readonly Scope[], scope: Scope): void {
  if (!scopes.includes(scope))
    throw new TurnlogError('forbidden', `This API key lacks the scope ${scope}.`);
}
