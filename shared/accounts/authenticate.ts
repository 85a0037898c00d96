import {
  isAuthenticChatToken,
  looksLikeChatToken,
  parseChatToken,
  type ChatGrant,
} from '../chatTokens/chatToken.ts';
import type { Actor } from '../commandHandling/context.ts';
import type { Keyring } from '../eventlog/encryption/keyring.ts';
import { claimedKeyId, hashApiKey, hashesAreEqual } from './apiKey.ts';
import type { Scope } from './events.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import type { ReadModels } from '../ports/readModels.ts';

interface Principal {
  account_id: string;
  key_id: string;
  scopes: readonly Scope[];
  /** Present for a chat token, which may do less than its key. */
  chat?: ChatGrant;
}

/**
 * The principal of a valid key or chat token. For one that is not valid, only the id of the matching
 * key, if any.
 */
interface Authentication {
  principal: Principal | undefined;
  key_id: string | undefined;
}

/** Compared against when no key matches, so that an unknown key takes as long as a wrong one. */
const NO_HASH = hashApiKey('');

type KeyRows = Pick<ReadModels, 'findApiKey' | 'findApiKeyByHash'>;
type ChatRows = Pick<ReadModels, 'findApiKey' | 'findAgent'>;

const isExpired = (expiresAt: string | null, now: number): boolean =>
  expiresAt !== null && Date.parse(expiresAt) <= now;

/**
 * Identifies the principal of an API key; none for a key that is unknown, wrong, revoked or
 * expired. Every key costs one lookup: by the id that it contains, or by its hash for a key that an
 * operator chose, which contains no id.
 */
export async function identifyKey(
  readModels: KeyRows,
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

/** True while a chat token has not expired and its agent exists. */
async function isChatAlive(
  readModels: Pick<ReadModels, 'findAgent'>,
  { agent_id, expires_at }: ChatGrant,
  now: number,
): Promise<boolean> {
  if (expires_at <= now) return false;
  const agent = await readModels.findAgent(agent_id);
  return agent !== undefined && !agent.erased;
}

/**
 * Identifies the principal of a chat token: the key that issued it, with the grant of the token.
 * Rejects with `unauthorized` for a token of this service that has ended, because it expired, its
 * key is not valid any more, or its agent was deleted. Resolves without a principal for any other
 * text.
 */
async function identifyChatToken(
  { rows, keys }: { rows: ChatRows; keys: Pick<Keyring, 'ensureKey'> },
  text: string,
  now: number,
): Promise<Authentication> {
  const token = parseChatToken(text);
  // A secret of the account is read, or made, only for a key that exists.
  const key = token && (await rows.findApiKey(token.claims.key_id));
  if (!token || !key || !(await isAuthenticChatToken(keys, key.account_id, token)))
    return { principal: undefined, key_id: undefined };
  const { key_id, ...chat } = token.claims;
  if (!(await isStillValid(rows, { key_id, chat }, now)))
    throw new TurnlogError(
      'unauthorized',
      'The chat token has expired, its API key is not valid any more, or its agent was deleted. Request a new token.',
    );
  const { account_id, scopes } = key;
  return { principal: { account_id, key_id, scopes, chat }, key_id };
}

/**
 * Identifies the principal of an API key or a chat token. Rejects with `unauthorized` for a chat
 * token that has ended, which is no failed guess, and with `stream_damaged` when the events that
 * decide about the key are damaged.
 */
export async function identify(
  { rows, keys }: { rows: ChatRows & KeyRows; keys: Pick<Keyring, 'ensureKey'> },
  credential: string,
  now: number,
): Promise<Authentication> {
  try {
    return await (looksLikeChatToken(credential)
      ? identifyChatToken({ rows, keys }, credential, now)
      : identifyKey(rows, credential, now));
  } catch (error) {
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    // The caller may know no more than the id of a key.
    const message = 'The events that decide about this key are damaged. Health names their stream.';
    throw new TurnlogError('stream_damaged', message, { cause: error });
  }
}

/**
 * Returns true while a key, and the chat token that was presented, remain valid. Used by connections
 * that outlast a request, and by runs that have waited.
 */
export async function isStillValid(
  readModels: ChatRows,
  { key_id, chat }: Pick<Actor, 'key_id' | 'chat'>,
  now: number,
): Promise<boolean> {
  const key = await readModels.findApiKey(key_id);
  const isValid = key !== undefined && key.revoked_at === null && !isExpired(key.expires_at, now);
  return isValid && (chat === undefined || (await isChatAlive(readModels, chat, now)));
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
