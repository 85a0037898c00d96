/**
 * Encrypted texts in read models: the reader of a row decrypts them. Destroying the key therefore
 * erases them too, and the projector needs no session keys.
 */
import type { ReadingKeys } from './keyring.ts';
import { InvalidCiphertext, keyIdOf, openText } from './protectedText.ts';

/** A text of an erased stream, or with a destroyed key, whose row records no erasure yet. */
export class TextErased extends InvalidCiphertext {}

/** The start of a ciphertext and the commitment at the end: a megabyte may be between them. */
const [BOX, COMMITMENT] = [/^[\w-]{16}\.[\w-]/, /^~[0-9a-f]{64}$/];
const COMMITMENT_CHARS = 65;
/** Escape marks of a plain text that would look encrypted without them. */
const MARKS = /^~+/;
/** Matches the beginning of such a text in JSON, in any member that ever held session texts in plain. */
const TO_MARK =
  /(?<="(?:input|output|content|arguments|result|message|call_id|tool)":\s*)"(?=~*[\w-]{16}\.[\w-](?:[^"\\]|\\.)*~[0-9a-f]{64}")/g;

/** An encrypted text as one string: ciphertext and commitment. */
export const formatEncryptedText = (box: string, sha256: string): string => `${box}~${sha256}`;

/** The commitment of an encrypted text. */
export const readCommitment = (closed: string): string => closed.slice(1 - COMMITMENT_CHARS);

/** Marks plain texts in an event's data that would be taken for encrypted ones. */
export const escapePlainTexts = (data: string): string =>
  data.includes('~') ? data.replace(TO_MARK, '"~') : data;

/** True for a text in a row that is encrypted; a plain one that looks so is marked. */
export const isEncryptedText = (text: string): boolean =>
  BOX.test(text) && COMMITMENT.test(text.slice(-COMMITMENT_CHARS));

/** The ids of the keys that the encrypted ones of these texts need. */
export const keyIdsOf = (texts: readonly string[]): Set<string> =>
  new Set(texts.filter(isEncryptedText).map(keyIdOf));

/** The text as it was written, without its mark. */
function unmarked(text: string): string {
  const [marks] = MARKS.exec(text) ?? [];
  return marks !== undefined && isEncryptedText(text.slice(marks.length)) ? text.slice(1) : text;
}

/**
 * Loads the keys of a stream's encrypted texts, and returns a function that decrypts them. Plain
 * texts of earlier releases pass unchanged. Throws `key_missing`, `store_unavailable`; the function
 * throws InvalidCiphertext, or TextErased when the key was destroyed or the stream is erased.
 */
export async function createTextOpener(
  keys: ReadingKeys,
  stream: string,
  texts: readonly string[],
): Promise<(text: string) => string> {
  const ids = keyIdsOf(texts);
  const keysById = await keys.find(ids);
  // A restored key store may hold the key of an erased text.
  const isErased = ids.size > 0 && (await keys.isErased(stream));
  return (text) => {
    if (!isEncryptedText(text)) return unmarked(text);
    if (isErased) throw new TextErased('the stream is erased');
    const key = keysById.get(keyIdOf(text));
    if (!key)
      throw new TextErased('the key of a text is destroyed, but the stream records no erasure');
    const box = text.slice(0, -COMMITMENT_CHARS);
    return openText({ box, sha256: readCommitment(text) }, key, stream).text;
  };
}
