import { claimedKeyId, hashApiKey, hashesAreEqual } from './apiKey.ts';
import type { Scope } from './events.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { ReadModels } from '../ports/readModels.ts';

interface Principal {
  account_id: string;
  key_id: string;
  scopes: readonly Scope[];
}

/**
 * The principal of a valid key. For a key that is not valid, only the id of the matching key, if
 * any.
 */
export interface Authentication {
  principal: Principal | undefined;
  key_id: string | undefined;
}

/** Compared against when no key matches, so that an unknown key takes as long as a wrong one. */
const NO_HASH = hashApiKey('');

const isExpired = (expiresAt: string | null, now: number): boolean =>
  expiresAt !== null && Date.parse(expiresAt) <= now;

/**
 * Identifies the principal of an API key; none for a key that is unknown, wrong, revoked or
 * expired. Every key costs one lookup: by the id that it contains, or by its hash for a key that an
 * operator chose, which contains no id.
 */
export async function identifyKey(
  readModels: Pick<ReadModels, 'findApiKey' | 'findApiKeyByHash'>,
  apiKey: string,
  now: number,
): Promise<Authentication> {
  const keyIdInKey = claimedKeyId(apiKey);
  const hash = hashApiKey(apiKey);
  const key = await (keyIdInKey === undefined
    ? readModels.findApiKeyByHash(hash)
    : readModels.findApiKey(keyIdInKey));
  const matches = hashesAreEqual(key?.hash ?? NO_HASH, hash);
  if (!key || !matches || key.revoked_at !== null || isExpired(key.expires_at, now))
    return { principal: undefined, key_id: key?.key_id };
  const { account_id, key_id, scopes } = key;
  return { principal: { account_id, key_id, scopes }, key_id };
}

/** Returns true while a key remains valid. Used by connections that outlast a request. */
export async function isStillValid(
  readModels: Pick<ReadModels, 'findApiKey'>,
  keyId: string,
  now: number,
): Promise<boolean> {
  const key = await readModels.findApiKey(keyId);
  return key !== undefined && key.revoked_at === null && !isExpired(key.expires_at, now);
}

/** The same error for every invalid key. */
export const unauthorizedError = (): TurnlogError =>
  new TurnlogError(
    'unauthorized',
    'The request carries no valid API key, neither in x-api-key nor as Authorization: Bearer.',
  );

export function requireScope(scopes: readonly Scope[], scope: Scope): void {
  if (!scopes.includes(scope))
    throw new TurnlogError('forbidden', `This API key lacks the scope ${scope}.`);
}
