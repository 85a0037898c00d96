/**
 * Chat tokens are stateless: `tlc_<claims>.<MAC>`. The MAC key is derived from a secret of the
 * account that all processes share and that is stored outside the log, so that a token is valid on
 * every replica and after a restart, and the erasure of the account ends it.
 */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { Keyring } from '../eventlog/encryption/keyring.ts';
import { isIdOf } from '../eventlog/streams.ts';
import { wordsKeyId } from '../search/wordTokens.ts';

/** The subject of a chat token: one agent and one end user. */
export interface ChatGrant {
  agent_id: string;
  /** The end user, as events of the user's sessions record it. */
  user_hmac: string;
  /** The only session of the token, also one of an API key; absent for all sessions of the user. */
  session_id?: string;
  /** In milliseconds since the epoch. */
  expires_at: number;
}

/** The grant of a token, and the API key that issued it. */
interface ChatClaims extends ChatGrant {
  key_id: string;
}

/** A token whose MAC is not verified yet. */
interface PresentedChatToken {
  claims: ChatClaims;
  signed: string;
  mac: Buffer;
}

const PREFIX = 'tlc_';
const TOKEN = /^tlc_([\w-]{1,1000})\.([\w-]{43})$/;

/** True for text with the form of a chat token, which no API key has. */
export const looksLikeChatToken = (text: string): boolean => text.startsWith(PREFIX);

type Secrets = Pick<Keyring, 'ensureKey'>;

/**
 * HMAC-SHA256 under a secret of the account, another one for each purpose. Resolves with undefined
 * for an erased account. Throws `store_unavailable`, `key_missing`.
 */
async function accountMac(
  keys: Secrets,
  account_id: string,
  [purpose, text]: [purpose: 'token' | 'user', text: string],
): Promise<Buffer | undefined> {
  const key = await keys.ensureKey(wordsKeyId(account_id));
  if (!key) return undefined;
  const secret = Buffer.from(key.secret, 'base64url');
  const derived = hkdfSync('sha256', secret, '', `turnlog chat ${purpose}`, 32);
  return createHmac('sha256', Buffer.from(derived)).update(text).digest();
}

/**
 * The end user of an account as events record it: it tells users apart and reveals none. Resolves
 * with undefined for an erased account. Throws `store_unavailable`, `key_missing`.
 */
export const hashChatUser = async (
  keys: Secrets,
  account_id: string,
  user: string,
): Promise<string | undefined> =>
  (await accountMac(keys, account_id, ['user', user]))?.toString('base64url');

/** The token of the claims. Errors: those of hashChatUser; undefined for an erased account. */
export async function signChatToken(
  keys: Secrets,
  account_id: string,
  claims: ChatClaims,
): Promise<string | undefined> {
  const signed = Buffer.from(JSON.stringify(claims)).toString('base64url');
  const mac = await accountMac(keys, account_id, ['token', signed]);
  return mac && `${PREFIX}${signed}.${mac.toString('base64url')}`;
}

/** Parses a token without verifying it; undefined for text that can't be one. */
export function parseChatToken(token: string): PresentedChatToken | undefined {
  const [, signed, mac] = TOKEN.exec(token) ?? [];
  if (signed === undefined || mac === undefined) return undefined;
  try {
    const claims = JSON.parse(Buffer.from(signed, 'base64url').toString()) as unknown;
    const key_id = (claims as { key_id?: unknown } | null)?.key_id;
    // The other claims are used only once the MAC is verified: this service has written them.
    if (typeof key_id !== 'string' || !isIdOf('key', key_id)) return undefined;
    return { claims: claims as ChatClaims, signed, mac: Buffer.from(mac, 'base64url') };
  } catch {
    return undefined;
  }
}

/** True for a token of the account. Throws `store_unavailable`, `key_missing`. */
export async function isAuthenticChatToken(
  keys: Secrets,
  account_id: string,
  { signed, mac }: PresentedChatToken,
): Promise<boolean> {
  const expected = await accountMac(keys, account_id, ['token', signed]);
  return expected !== undefined && mac.length === expected.length && timingSafeEqual(mac, expected);
}
