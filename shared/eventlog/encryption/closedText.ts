/**
 * Texts that read models keep closed, as the log does: whoever reads a row opens them. So an erasure
 * reaches them with the key, and what fills the read models needs no keys of sessions.
 */
import type { Keyring } from './keyring.ts';
import { InvalidCiphertext, keyIdOf, openText } from './protectedText.ts';

/** The key of a closed text was destroyed: an erasure takes it, and no row has said so yet. */
export class TextErased extends InvalidCiphertext {}

/** The beginning of a box, and a commitment behind it: what is between them may have a megabyte. */
const [BOX, COMMITMENT] = [/^[\w-]{16}\.[\w-]/, /^~[0-9a-f]{64}$/];
const COMMITMENT_CHARS = 65;
/** The marks of an open text that looks closed without them. */
const MARKS = /^~+/;
/** In JSON, where such a text begins; by the names that open texts of sessions ever had. */
const TO_MARK =
  /(?<="(?:input|output|content|arguments|result|message)":\s*)"(?=~*[\w-]{16}\.[\w-](?:[^"\\]|\\.)*~[0-9a-f]{64}")/g;

/** A text in one string: its box and its commitment. */
export const closedText = (box: string, sha256: string): string => `${box}~${sha256}`;

/** The JSON of an event's data, with a mark on each open text that would be taken for a closed one. */
export const markOpenTexts = (data: string): string =>
  data.includes('~') ? data.replace(TO_MARK, '"~') : data;

const isClosed = (text: string): boolean =>
  BOX.test(text) && COMMITMENT.test(text.slice(-COMMITMENT_CHARS));

/** The text without its mark, as it was written. */
function unmarked(text: string): string {
  const [marks] = MARKS.exec(text) ?? [];
  return marks !== undefined && isClosed(text.slice(marks.length)) ? text.slice(1) : text;
}

/**
 * What opens closed texts of a stream, once it has the keys of these. A text of before, which stands
 * open, passes as it was written.
 * Errors: `key_missing`, `store_unavailable`. Those of the opening: BoxBroken, as TextErased where the key
 * was destroyed.
 */
export async function createTextOpener(
  keys: Pick<Keyring, 'find'>,
  stream: string,
  texts: readonly string[],
): Promise<(text: string) => string> {
  const found = await keys.find(new Set(texts.filter(isClosed).map(keyIdOf)));
  return (text) => {
    if (!isClosed(text)) return unmarked(text);
    const key = found.get(keyIdOf(text));
    if (!key) throw new TextErased('the key of a text is destroyed, and no erasure says so');
    const box = text.slice(0, -COMMITMENT_CHARS);
    return openText({ box, sha256: text.slice(1 - COMMITMENT_CHARS) }, key, stream).text;
  };
}
