import canonicalize from 'canonicalize';
import { SLICE_BYTES, yieldToEventLoop } from '../lib/concurrency/yieldToEventLoop.ts';
import { DeferredJson } from '../lib/slices.ts';

/** Deeper values go to the library, which uses no call stack for them. */
const MAX_DEPTH = 64;

/**
 * True when JSON.stringify writes the value in canonical form: members are in order, and it drops
 * none.
 */
function isInOrder(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object') return typeof value === 'boolean' || Number.isFinite(value);
  if (value === null) return true;
  if (depth > MAX_DEPTH) return false;
  if (Array.isArray(value)) return value.every((item) => isInOrder(item, depth + 1));
  let previousName = '';
  for (const name of Object.keys(value)) {
    // Ordered by UTF-16 code units (RFC 8785 §3.2.3).
    if (name < previousName || !name.isWellFormed()) return false;
    if (!isInOrder((value as Record<string, unknown>)[name], depth + 1)) return false;
    previousName = name;
  }
  return !('toJSON' in value);
}

/**
 * Serializes a value as canonical JSON (RFC 8785, JCS). Throws for values that JSON can't
 * represent, including lone surrogates.
 */
export function canonicalJson(value: unknown): string {
  // Most values are in order already, which makes this path much cheaper.
  if (isInOrder(value)) return JSON.stringify(value);
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('the value has no JSON form');
  return text;
}

const memberJson = (value: unknown): string =>
  value instanceof DeferredJson ? value.text() : JSON.stringify(value);
const canonicalMemberJson = (value: unknown): string =>
  canonicalJson(value instanceof DeferredJson ? value.value() : value);

/** Receives the JSON of a value in slices, in the name of an account. */
interface JsonSlices {
  accountId: string;
  write: (text: string) => void;
}

/** Writes the JSON of an object. Lists that are its members are divided by item. */
async function writeMembers(
  members: readonly (readonly [string, unknown])[],
  serialize: (value: unknown) => string,
  { accountId, write }: JsonSlices,
): Promise<void> {
  let slice = '{';
  async function flush(): Promise<void> {
    write(slice);
    slice = '';
    await yieldToEventLoop(accountId);
  }
  let beforeMember = '';
  for (const [name, member] of members) {
    slice += `${beforeMember}${serialize(name)}:`;
    beforeMember = ',';
    const items: readonly unknown[] = Array.isArray(member) ? member : [];
    let beforeItem = '[';
    for (const item of items) {
      slice += beforeItem + serialize(item);
      beforeItem = ',';
      if (slice.length >= SLICE_BYTES) await flush();
    }
    slice += items.length > 0 ? ']' : serialize(member);
    if (slice.length >= SLICE_BYTES) await flush();
  }
  write(`${slice}}`);
}

const membersOf = (value: object): [string, unknown][] =>
  Object.entries(value).filter(([, member]) => member !== undefined);

/**
 * Writes the JSON of a plain object in slices, its members in their own order. It yields to the
 * event loop between them, so that a prompt of megabytes holds up no other account. Members, and items of
 * lists that are members, may be DeferredJson.
 */
export const writeJson = (value: object, slices: JsonSlices): Promise<void> =>
  writeMembers(membersOf(value), memberJson, slices);

/** The same in canonical form. Throws as canonicalJson does. */
export const writeCanonicalJson = (value: object, slices: JsonSlices): Promise<void> => {
  // Ordered by UTF-16 code units (RFC 8785 §3.2.3).
  const members = membersOf(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return writeMembers(members, canonicalMemberJson, slices);
};
