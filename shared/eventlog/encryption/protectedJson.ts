/**
 * Protected texts in the canonical JSON text of an event's data. No string of a JSON text can look
 * like one, because the quotes within it are escaped; so they are found without being decoded.
 */
import { canonicalJson } from '../canonicalJson.ts';
import { keyIdOf } from './protectedText.ts';

const CLOSED = /\{"box":"([\w-]{16}\.[\w-]+)","sha256":"([0-9a-f]{64})"\}/g;
const COVERED = /\{"box":"[\w-]{16}\.[\w-]+",("sha256":"[0-9a-f]{64}"\})/g;
const COMMITMENT = /\{"sha256":"[0-9a-f]{64}"\}/;

/** What the hash of an event covers of its data: the commitments, without the boxes. */
export const withoutBoxes = (data: string): string => data.replace(COVERED, '{$1');

/** A member of that name, outside of all strings. */
const hasBoxes = (data: string): boolean => data.includes('"box"');

/**
 * The data with every box replaced by JSON text; as it is where there is none. A store that wrote
 * the JSON anew, in another order or with blanks, is read all the same.
 */
export function replaceBoxes(
  data: string,
  replacement: (box: string, sha256: string) => string,
): string {
  if (!hasBoxes(data)) return data;
  const replaced = data.replace(CLOSED, (_text, box: string, sha256: string) =>
    replacement(box, sha256),
  );
  if (!hasBoxes(replaced)) return replaced;
  return writtenAnew(replaced).replace(CLOSED, (_text, box: string, sha256: string) =>
    replacement(box, sha256),
  );
}

/** In canonical form. What others wrote may not be JSON: the decoder will see that, of this event alone. */
function writtenAnew(data: string): string {
  try {
    return canonicalJson(JSON.parse(data));
  } catch {
    return data;
  }
}

/** Adds the ids of the keys that closed the boxes in the data. */
export function addKeyIds(data: string, ids: Set<string>): void {
  if (!hasBoxes(data)) return;
  replaceBoxes(data, (box) => {
    ids.add(keyIdOf(box));
    return '0';
  });
}

/** True where a commitment stands without its box. */
export const lacksBox = (data: string): boolean => COMMITMENT.test(data);
