/**
 * Finds protected texts in the canonical JSON of an event's data without decoding it. No JSON
 * string can look like one, because its quotes are escaped.
 */
import { randomUUID } from 'node:crypto';
import { canonicalJson } from '../canonicalJson.ts';
import { keyIdOf, looksProtected } from './protectedText.ts';

const CLOSED = /\{"box":"([\w-]{16}\.[\w-]+)","sha256":"([0-9a-f]{64})"\}/g;

/** True for a member named `box`: inside a string its quotes would be escaped. */
export const hasCiphertexts = (data: string): boolean => data.includes('"box"');

/**
 * Replaces every ciphertext in the data by JSON text. Also handles stores that reformat or reorder
 * the JSON.
 */
export function replaceCiphertexts(
  data: string,
  replacement: (box: string, sha256: string) => string,
): string {
  if (!hasCiphertexts(data)) return data;
  const replaced = data.replace(CLOSED, (_text, box: string, sha256: string) =>
    replacement(box, sha256),
  );
  if (!hasCiphertexts(replaced)) return replaced;
  return toCanonical(replaced).replace(CLOSED, (_text, box: string, sha256: string) =>
    replacement(box, sha256),
  );
}

/**
 * Rewrites data in canonical form. Data of other programs may not be JSON; decoding that event
 * reports it.
 */
function toCanonical(data: string): string {
  try {
    return canonicalJson(JSON.parse(data));
  } catch {
    return data;
  }
}

/** Calls a function for every ciphertext in the data, with its commitment. */
export function forEachCiphertext(
  data: string,
  visit: (box: string, sha256: string) => void,
): void {
  if (!hasCiphertexts(data)) return;
  replaceCiphertexts(data, (box, sha256) => {
    visit(box, sha256);
    return '0';
  });
}

/** Adds the key ids of all ciphertexts in the data; true when there are any. */
export function addKeyIds(data: string, ids: Set<string>): boolean {
  let any = false;
  forEachCiphertext(data, (box) => {
    ids.add(keyIdOf(box));
    any = true;
  });
  return any;
}

const holdsCommitment = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (looksProtected(value) || Object.values(value).some(holdsCommitment));

/**
 * True when data whose ciphertexts were replaced still holds a commitment: it lacks its ciphertext, or
 * stands beside a text or a mark that only readers are shown. The hash of the event is the same.
 */
export function lacksCiphertext(data: string): boolean {
  // An escape may hide the name.
  if (!data.includes('"sha256"') && !data.includes('\\u')) return false;
  try {
    return holdsCommitment(JSON.parse(data));
  } catch {
    // Decoding the event reports it.
    return false;
  }
}

/** Random, so that no data has an object that is taken for a place. */
const PLACE = `place-${randomUUID()}`;

/**
 * An object that holds the place of a text in an event's data: texts of megabytes are inserted into
 * the parsed data instead of being written as JSON and parsed again.
 */
export const textPlace = (index: number): object => ({ [PLACE]: index });

/** Replaces the places in parsed data by the values with their indices. Changes the data. */
export function fillPlaces(data: unknown, values: readonly unknown[]): unknown {
  if (typeof data !== 'object' || data === null) return data;
  const members = data as Record<string, unknown>;
  const index = members[PLACE];
  if (typeof index === 'number') return values[index];
  for (const [name, member] of Object.entries(members))
    if (typeof member === 'object') members[name] = fillPlaces(member, values);
  return data;
}
