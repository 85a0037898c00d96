import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { NewEvent } from '../event.ts';
import type { Keyring } from './keyring.ts';
import { TEXTS, type TextLocations } from './textLocations.ts';
import { commitText, looksProtected, type DisclosedText, type TextKey } from './protectedText.ts';

type Commit = (text: string) => unknown;

/** Up to this number of names, inserting each at its place takes half the time of `toSorted`. */
const MOST_INSERTED = 32;

/** The names of an object's members, ordered by UTF-16 code units (RFC 8785 §3.2.3). */
function namesInOrder(value: object): string[] {
  const names = Object.keys(value);
  if (names.length > MOST_INSERTED) return names.toSorted();
  for (let count = 1; count < names.length; count += 1) {
    const name = names[count]!;
    let at = count;
    for (; at > 0 && names[at - 1]! > name; at -= 1) names[at] = names[at - 1]!;
    names[at] = name;
  }
  return names;
}

/** Throws `event_invalid` for data that readers would take for a protected text. */
function commitTexts(value: unknown, texts: TextLocations | undefined, commitTo: Commit): unknown {
  if (typeof value === 'string') return texts === 'text' ? commitTo(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (looksProtected(value))
    throw new TurnlogError(
      'event_invalid',
      'The data contains an object that looks like a protected text: {"sha256": …}.',
    );
  if (Array.isArray(value)) {
    const items = typeof texts === 'object' && 'items' in texts ? texts.items : undefined;
    return value.map((item) => commitTexts(item, items, commitTo));
  }
  const members = typeof texts === 'object' && 'members' in texts ? texts.members : undefined;
  const copy: Record<string, unknown> = {};
  // In canonical order, which is the cheapest to serialize.
  for (const name of namesInOrder(value)) {
    const member = commitTexts((value as typeof copy)[name], members?.get(name), commitTo);
    // Assigning it would set the prototype.
    if (name === '__proto__')
      Object.defineProperty(copy, name, { value: member, enumerable: true });
    else copy[name] = member;
  }
  return copy;
}

/** Events that only commit to their texts, and the key to encrypt those with. */
export interface SealedEvents {
  events: NewEvent[];
  /** Undefined when the events have no texts and no key was given. */
  key: TextKey | undefined;
}

/**
 * Commits to the texts of events, which are later encrypted with the stream's key or, if it has
 * none yet, with a new one. Every call uses new salts: seal events once before retrying their
 * append. Throws `event_invalid` for data that looks like a protected text, `store_unavailable`
 * when a new key can't be created.
 */
export async function commitEventTexts(
  keys: Pick<Keyring, 'issueKey'>,
  streamKey: TextKey | undefined,
  events: readonly NewEvent[],
): Promise<SealedEvents> {
  const committed = events.map((event) => {
    const texts: DisclosedText[] = [];
    const data = commitTexts(event.data, TEXTS.get(event.type), (text) => {
      if (!text.isWellFormed()) throw new TypeError('a text contains a lone surrogate');
      const disclosed = commitText(text);
      texts.push(disclosed);
      return { sha256: disclosed.sha256 };
    }) as object;
    return { event: { ...event, data }, texts };
  });
  const hasTexts = committed.some(({ texts }) => texts.length > 0);
  const key = streamKey ?? (hasTexts ? await keys.issueKey() : undefined);
  const sealed = committed.map(({ event, texts }) =>
    key && texts.length > 0 ? { ...event, toClose: { texts, key } } : event,
  );
  return { events: sealed, key };
}
