/**
 * Where the protected texts of stored events are opened. What reads the log for its content reads it
 * through here; what verifies, copies or compares events has them as they are stored.
 */
import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';
import { decodeEvent } from '../codec.ts';
import type { RecordedEvent } from '../event.ts';
import { closedText, markOpenTexts } from './closedText.ts';
import type { Keyring } from './keyring.ts';
import { addKeyIds, lacksBox, replaceBoxes } from './protectedJson.ts';
import {
  InvalidCiphertext,
  keyIdOf,
  openText,
  type DisclosedText,
  type ErasedText,
  type TextKey,
} from './protectedText.ts';

type Keys = Pick<Keyring, 'find'>;

/** A stored event in whose data the texts stand as strings; one without texts is as it was. */
export interface ReadableEvent extends StoredEvent {
  /** As it is stored, where that is something else: its hash covers that. */
  stored?: StoredEvent;
  /** The key of its texts, where it has not been destroyed. */
  key?: TextKey;
  /** True where a key was destroyed: the texts are empty. */
  erased?: boolean;
  /** True where a key was destroyed, and the stream says nothing of an erasure. */
  unsaid?: true;
  /**
   * Why its texts can't be had: `key_missing`, or `event_invalid` for a box that is not what was
   * closed. Its data is as it is stored.
   */
  unreadable?: TurnlogError;
}

/** An event with its texts. */
export interface OpenedEvent extends RecordedEvent {
  /** True where texts are empty because their key was destroyed. */
  erased: boolean;
  /** The key of its texts, where it has any and they were not erased. */
  key?: TextKey | undefined;
}

/** By the id of a key: undefined for one that was destroyed, an error for one that is not here. */
type Lookup = ReadonlyMap<string, TextKey | undefined | TurnlogError>;

/** One at a time, so that a key that was lost keeps nothing else back. */
async function oneByOne(keys: Keys, ids: ReadonlySet<string>): Promise<Lookup> {
  const found = new Map<string, TextKey | undefined | TurnlogError>();
  for (const id of ids) {
    try {
      found.set(id, (await keys.find(new Set([id]))).get(id));
    } catch (error) {
      if (!isTurnlogError(error, 'key_missing')) throw error;
      found.set(id, error);
    }
  }
  return found;
}

/** Errors: `store_unavailable`. */
async function keysOf(keys: Keys, events: readonly StoredEvent[]): Promise<Lookup> {
  const ids = new Set<string>();
  for (const { data } of events) addKeyIds(data, ids);
  if (ids.size === 0) return new Map();
  try {
    return await keys.find(ids);
  } catch (error) {
    if (!isTurnlogError(error, 'key_missing')) throw error;
    return oneByOne(keys, ids);
  }
}

const unreadable = ({ id, stream, revision }: StoredEvent, error: unknown): TurnlogError =>
  isTurnlogError(error)
    ? error
    : new TurnlogError(
        'event_invalid',
        `A text of the event ${id} (${stream} revision ${revision}) can't be read: ${(error as Error).message}.`,
        { cause: error },
      );

type Shown = (text: DisclosedText | ErasedText) => unknown;

/** The event with every box replaced by what is shown of it. */
function replaced(event: StoredEvent, lookup: Lookup, shown: Shown): ReadableEvent {
  let last: TextKey | undefined;
  let erased = false;
  try {
    const data = replaceBoxes(event.data, (box, sha256) => {
      const key = lookup.get(keyIdOf(box));
      if (isTurnlogError(key)) throw key;
      last = key ?? last;
      erased ||= key === undefined;
      return JSON.stringify(
        shown(key ? openText({ box, sha256 }, key, event.stream) : { sha256, erased: true }),
      );
    });
    if (data === event.data) return event;
    return { ...event, data, stored: event, erased, ...(last && { key: last }) };
  } catch (error) {
    if (!(error instanceof InvalidCiphertext) && !isTurnlogError(error)) throw error;
    return { ...event, unreadable: unreadable(event, error) };
  }
}

/** A text without its box, as in a copy that leaves them out, can't be read. */
const unlessBoxless = (event: StoredEvent, readable: ReadableEvent): ReadableEvent =>
  readable.unreadable || !lacksBox(readable.data)
    ? readable
    : { ...event, unreadable: unreadable(event, new InvalidCiphertext('its box is missing')) };

const opened = (event: StoredEvent, lookup: Lookup): ReadableEvent =>
  unlessBoxless(
    event,
    replaced(event, lookup, (text) => ('text' in text ? text.text : '')),
  );

function withClosedTexts(event: StoredEvent): ReadableEvent {
  const data = replaceBoxes(markOpenTexts(event.data), (box, sha256) =>
    JSON.stringify(closedText(box, sha256)),
  );
  return data === event.data ? event : { ...event, data, stored: event };
}

/**
 * Opens the texts of stored events, but for those that stay closed: in their data stand closed texts
 * (closedText.ts). Errors: `store_unavailable` where the keys can't be reached.
 */
export async function openTexts(
  keys: Keys,
  events: readonly StoredEvent[],
  staysClosed: (event: StoredEvent) => boolean = () => false,
): Promise<ReadableEvent[]> {
  const lookup = await keysOf(
    keys,
    events.filter((event) => !staysClosed(event)),
  );
  return events.map((event) =>
    staysClosed(event) ? unlessBoxless(event, withClosedTexts(event)) : opened(event, lookup),
  );
}

/** The event of readable texts, decoded. Errors: why they can't be had; SyntaxError. */
export function openedEvent(event: ReadableEvent): OpenedEvent {
  if (event.unreadable) throw event.unreadable;
  return { ...decodeEvent(event), erased: event.erased === true, key: event.key };
}

/**
 * Stored events with their texts. Errors: `key_missing`, `event_invalid` for a box that is not what
 * was closed, `store_unavailable`, SyntaxError.
 */
export const openEvents = async (
  keys: Keys,
  events: readonly StoredEvent[],
): Promise<OpenedEvent[]> => (await openTexts(keys, events)).map(openedEvent);

/**
 * Stored events in which each text stands with its salt and its commitment: who has them can
 * compute the hash again, and check the texts. Those that were erased say so.
 * Errors: those of openEvents.
 */
export async function discloseEvents(
  keys: Keys,
  events: readonly StoredEvent[],
): Promise<RecordedEvent[]> {
  const lookup = await keysOf(keys, events);
  return events.map((event) => {
    const disclosed = replaced(event, lookup, (text) => text);
    if (disclosed.unreadable) throw disclosed.unreadable;
    return decodeEvent(disclosed);
  });
}
