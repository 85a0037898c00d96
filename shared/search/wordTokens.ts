/**
 * Tokens replace words in the index. A token is a truncated HMAC of the word under a key of its
 * account. It reveals nothing about the word without the key, and tokens of two accounts differ
 * except by coincidence.
 */
import { createHash, createHmac, createSecretKey } from 'node:crypto';
import type { Keyring } from '../eventlog/encryption/keyring.ts';

/**
 * Tokens contain only letters, so that every database treats them as words. They have about 37
 * bits.
 */
const [LETTERS, LENGTH, BYTES] = [26, 8, 6];
const A = 'a'.charCodeAt(0);

function tokenOf(bytes: Buffer): string {
  let rest = bytes.readUIntBE(0, BYTES);
  const codes: number[] = [];
  for (let letter = 0; letter < LENGTH; letter += 1) {
    codes.push(A + (rest % LETTERS));
    rest = Math.floor(rest / LETTERS);
  }
  return String.fromCharCode(...codes);
}

/**
 * The id of the key for an account's words. It is derived from the account's id, so that an erasure
 * finds it without a table.
 */
export const wordsKeyId = (accountId: string): string =>
  createHash('sha256').update(`words of ${accountId}`).digest('base64url').slice(0, 16);

/**
 * Creates a function that computes the token of a word in an account. It caches tokens, so discard
 * it soon. Resolves with undefined for an erased account.
 */
export async function createWordTokenizer(
  keys: Pick<Keyring, 'ensureKey'>,
  accountId: string,
): Promise<((word: string) => string) | undefined> {
  const accountKey = await keys.ensureKey(wordsKeyId(accountId));
  if (!accountKey) return undefined;
  const key = createSecretKey(accountKey.secret, 'base64url');
  const tokens = new Map<string, string>();
  return (word) => {
    let token = tokens.get(word);
    if (token === undefined)
      tokens.set(word, (token = tokenOf(createHmac('sha256', key).update(word).digest())));
    return token;
  };
}
