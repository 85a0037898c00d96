/**
 * What stands in the index in place of a word: an HMAC of it under a key of its account, cut short.
 * Without the key it tells nothing of the word, and of two accounts it is never the same but by chance.
 */
import { createHash, createHmac, createSecretKey } from 'node:crypto';
import type { Keyring } from '../eventlog/encryption/keyring.ts';

/** Letters only, so that no database takes a token for anything but a word; some 37 bits. */
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

/** The id of the key of an account's words: found without a table, and by whoever erases the account. */
export const wordsKeyId = (accountId: string): string =>
  createHash('sha256').update(`words of ${accountId}`).digest('base64url').slice(0, 16);

/**
 * What makes tokens of an account's words; it remembers those that it has made, and is to be let go
 * of soon. Undefined where the account was erased.
 */
export async function createWordTokenizer(
  keys: Pick<Keyring, 'ensureKey'>,
  accountId: string,
): Promise<((word: string) => string) | undefined> {
  const found = await keys.ensureKey(wordsKeyId(accountId));
  if (!found) return undefined;
  const key = createSecretKey(found.secret, 'base64url');
  const known = new Map<string, string>();
  return (word) => {
    let token = known.get(word);
    if (token === undefined)
      known.set(word, (token = tokenOf(createHmac('sha256', key).update(word).digest())));
    return token;
  };
}
