/**
 * Texts that read models keep closed, as the log does: whoever reads a row opens them. So an erasure
 * reaches them with the key, and what fills the read models needs no keys of sessions.
 */
import type { Keyring } from './keyring.ts';
import { BoxBroken, keyIdOf, open } from './protectedText.ts';

const CLOSED = /^([\w-]{16}\.[\w-]+)~([0-9a-f]{64})$/;
/** An open text that looks closed, with its marks. */
const MARKED = /^~+[\w-]{16}\.[\w-]+~[0-9a-f]{64}$/;
/** In JSON, where such a text begins; by the names that open texts of sessions ever had. */
const TO_MARK =
  /(?<="(?:input|output|content|arguments|result|message)":\s*)"(?=~*[\w-]{16}\.[\w-]+~[0-9a-f]{64}")/g;

/** A text in one string: its box and its commitment. */
export const closedText = (box: string, sha256: string): string => `${box}~${sha256}`;

/** The JSON of an event's data, with a mark on each open text that would be taken for a closed one. */
export const markOpenTexts = (data: string): string =>
  data.includes('~') ? data.replace(TO_MARK, '"~') : data;

/** The id of the key that a text was closed with; undefined for one that a log of before had open. */
function keyIdIn(text: string): string | undefined {
  const [, box] = CLOSED.exec(text) ?? [];
  return box === undefined ? undefined : keyIdOf(box);
}

/**
 * What opens closed texts, once it has the keys of these. A text that stands open passes as it is.
 * Errors: `key_missing`, `store_unavailable`. Those of the opening: BoxBroken, also where the key was
 * destroyed.
 */
export async function textOpener(
  keys: Pick<Keyring, 'find'>,
  texts: Iterable<string>,
): Promise<(text: string) => string> {
  const ids = new Set<string>();
  for (const text of texts) {
    const id = keyIdIn(text);
    if (id !== undefined) ids.add(id);
  }
  const found = await keys.find(ids);
  return (text) => {
    const [, box, sha256] = CLOSED.exec(text) ?? [];
    if (box === undefined || sha256 === undefined) return MARKED.test(text) ? text.slice(1) : text;
    const key = found.get(keyIdOf(box));
    if (!key) throw new BoxBroken('the key of a text is destroyed, and no erasure says so');
    return open(box, sha256, key).text;
  };
}
