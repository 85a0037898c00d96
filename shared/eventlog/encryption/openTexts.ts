/**
 * Decrypts the protected texts of stored events for readers of their content. Code that verifies,
 * copies or compares events uses them as stored.
 */
import { mapInSlices } from '../../lib/concurrency/yieldToEventLoop.ts';
import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';
import { decodeEvent } from '../codec.ts';
import { isErasure } from '../eventTypes.ts';
import type { RecordedEvent } from '../event.ts';
import { formatEncryptedText, escapePlainTexts } from './encryptedText.ts';
import type { ReadingKeys } from './keyring.ts';
import {
  addKeyIds,
  fillPlaces,
  lacksCiphertext,
  replaceCiphertexts,
  textPlace,
} from './protectedJson.ts';
import {
  InvalidCiphertext,
  keyIdOf,
  openText,
  type DisclosedText,
  type ErasedText,
  type TextKey,
} from './protectedText.ts';

/** A stored event whose data holds the texts as strings; an event without texts is unchanged. */
export interface ReadableEvent extends StoredEvent {
  /** The event as stored, when it differs: its hash covers that form. */
  stored?: StoredEvent;
  /** The number of its protected texts. */
  texts?: number;
  /** The key of its texts, unless destroyed. */
  key?: TextKey;
  /** True when a key was destroyed or the stream is erased: the texts are empty. */
  erased?: boolean;
  /** True when a key was destroyed but the stream records no erasure. */
  unsaid?: true;
  /**
   * Why its texts can't be read: `key_missing`, or `event_invalid` for an invalid ciphertext. The
   * data is then as stored.
   */
  unreadable?: TurnlogError;
  /** Its texts, if `data` has a place for each of them (`textPlace`) instead of a string. */
  shown?: readonly ShownText[];
}

/** The event with empty texts, for readers that need none: no key is used, so a lost one is no obstacle. */
export const withEmptyTexts = (stored: StoredEvent): ReadableEvent => ({
  ...stored,
  data: replaceCiphertexts(stored.data, () => '""'),
  stored,
});

/** An event with its texts decrypted. */
export interface OpenedEvent extends RecordedEvent {
  /** True when texts are empty because their key was destroyed or their stream is erased. */
  erased: boolean;
  /** The key of its texts; undefined for an event without texts and for erased texts. */
  key?: TextKey | undefined;
}

/** By key id: undefined for a destroyed key, an error for an unavailable one. */
type FoundKeys = ReadonlyMap<string, TextKey | undefined | TurnlogError>;

/** The key of a text of a stream: as in FoundKeys, and undefined for a text of an erased stream. */
type Lookup = (stream: string, keyId: string) => TextKey | undefined | TurnlogError;

/** Looks keys up one at a time, so that one lost key does not make the others unavailable. */
async function findOneByOne(keys: ReadingKeys, ids: ReadonlySet<string>): Promise<FoundKeys> {
  const keysById = new Map<string, TextKey | undefined | TurnlogError>();
  for (const id of ids) {
    try {
      keysById.set(id, (await keys.find(new Set([id]))).get(id));
    } catch (error) {
      if (!isTurnlogError(error, 'key_missing')) throw error;
      keysById.set(id, error);
    }
  }
  return keysById;
}

async function findKeys(keys: ReadingKeys, ids: ReadonlySet<string>): Promise<FoundKeys> {
  if (ids.size === 0) return new Map();
  try {
    return await keys.find(ids);
  } catch (error) {
    if (!isTurnlogError(error, 'key_missing')) throw error;
    return findOneByOne(keys, ids);
  }
}

/** Streams whose erasure is looked up at a time. */
const LOOKUPS = 32;

/**
 * The erased ones of some streams. A key that exists says nothing: a key store that was restored
 * from a backup holds keys of texts that were erased since.
 */
async function findErased(
  keys: ReadingKeys,
  events: readonly StoredEvent[],
  streams: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const erased = new Set<string>();
  for (const { stream, type } of events) if (isErasure(type)) erased.add(stream);
  const unknown = [...streams].filter((stream) => !erased.has(stream));
  const note = (stream: string, isErased: boolean): void => void (isErased && erased.add(stream));
  for (let first = 0; first < unknown.length; first += LOOKUPS) {
    const looked = unknown.slice(first, first + LOOKUPS).flatMap((stream) => {
      const isErased = keys.isErased(stream);
      if (typeof isErased !== 'boolean') return [isErased.then((found) => note(stream, found))];
      note(stream, isErased);
      return [];
    });
    // Without a wait where all are known, as in most pages.
    if (looked.length > 0) await Promise.all(looked);
  }
  return erased;
}

/** Finds the keys of the texts that readers may see. */
async function createLookup(keys: ReadingKeys, events: readonly StoredEvent[]): Promise<Lookup> {
  const ids = new Set<string>();
  const streams = new Set<string>();
  for (const { data, stream } of events) if (addKeyIds(data, ids)) streams.add(stream);
  // In this order: an erasure that becomes known during the lookup counts.
  const keysById = await findKeys(keys, ids);
  const erased = await findErased(keys, events, streams);
  return (stream, keyId) => (erased.has(stream) ? undefined : keysById.get(keyId));
}

const unreadableError = ({ id, stream, revision }: StoredEvent, error: unknown): TurnlogError =>
  isTurnlogError(error)
    ? error
    : new TurnlogError(
        'event_invalid',
        `A text of the event ${id} (${stream} revision ${revision}) can't be read: ${(error as Error).message}.`,
        { cause: error },
      );

type ShownText = DisclosedText | ErasedText;
type ShowText = (text: ShownText) => unknown;

const stringOf = (text: ShownText): string => ('text' in text ? text.text : '');

/** The event with every ciphertext replaced by what `show` returns. */
function replaceTexts(event: StoredEvent, lookup: Lookup, show: ShowText): ReadableEvent {
  let lastKey: TextKey | undefined;
  let erased = false;
  let texts = 0;
  try {
    const data = replaceCiphertexts(event.data, (box, sha256) => {
      const key = lookup(event.stream, keyIdOf(box));
      if (isTurnlogError(key)) throw key;
      lastKey = key ?? lastKey;
      erased ||= key === undefined;
      texts += 1;
      return JSON.stringify(
        show(key ? openText({ box, sha256 }, key, event.stream) : { erased: true, sha256 }),
      );
    });
    if (data === event.data) return event;
    return { ...event, data, stored: event, erased, texts, ...(lastKey && { key: lastKey }) };
  } catch (error) {
    if (!(error instanceof InvalidCiphertext) && !isTurnlogError(error)) throw error;
    return { ...event, unreadable: unreadableError(event, error) };
  }
}

/** A text without its ciphertext, as in a copy that omits them, can't be read. */
const requireCiphertexts = (event: StoredEvent, readable: ReadableEvent): ReadableEvent =>
  readable.unreadable || !lacksCiphertext(readable.data)
    ? readable
    : {
        ...event,
        unreadable: unreadableError(event, new InvalidCiphertext('its ciphertext is missing')),
      };

const openEventTexts = (event: StoredEvent, lookup: Lookup): ReadableEvent =>
  requireCiphertexts(event, replaceTexts(event, lookup, stringOf));

function openTextsApart(event: StoredEvent, lookup: Lookup): ReadableEvent {
  const shown: ShownText[] = [];
  const readable = replaceTexts(event, lookup, (text) => textPlace(shown.push(text) - 1));
  return readable.texts ? { ...readable, shown } : readable;
}

function withClosedTexts(event: StoredEvent): ReadableEvent {
  const data = replaceCiphertexts(escapePlainTexts(event.data), (box, sha256) =>
    JSON.stringify(formatEncryptedText(box, sha256)),
  );
  return data === event.data ? event : { ...event, data, stored: event };
}

/** Followers of the log, which read events of all accounts, share the turns of one account. */
const FOLLOWERS = 'followers';

interface OpenOptions {
  /** Selects events that keep encrypted texts; none by default. */
  staysClosed?: ((event: StoredEvent) => boolean) | undefined;
  /** The account that the texts are decrypted for; by default, all followers of the log. */
  accountId?: string;
}

/**
 * Decrypts the texts of stored events. Events that `staysClosed` selects keep encrypted texts
 * (encryptedText.ts). The work takes turns with that of other accounts. Throws `store_unavailable` when
 * the keys can't be reached.
 */
export async function decryptTextsInData(
  keys: ReadingKeys,
  events: readonly StoredEvent[],
  { staysClosed = () => false, accountId = FOLLOWERS }: OpenOptions = {},
): Promise<ReadableEvent[]> {
  const lookup = await createLookup(
    keys,
    events.filter((event) => !staysClosed(event)),
  );
  return mapInSlices(accountId, events, (event) =>
    staysClosed(event)
      ? requireCiphertexts(event, withClosedTexts(event))
      : openEventTexts(event, lookup),
  );
}

/**
 * Decrypts the texts of stored events and keeps them apart from the data, for `decodeOpenedEvent` and
 * `decodeDisclosedEvent`: texts of megabytes are neither written nor parsed as JSON. Throws as decryptTextsInData.
 */
export async function decryptTexts(
  keys: ReadingKeys,
  events: readonly StoredEvent[],
): Promise<ReadableEvent[]> {
  const lookup = await createLookup(keys, events);
  return events.map((event) => requireCiphertexts(event, openTextsApart(event, lookup)));
}

/** Decodes a readable event, with each text as `show` returns it if the texts are apart. */
function decodeReadable(event: ReadableEvent, show: ShowText): RecordedEvent {
  if (event.unreadable) throw event.unreadable;
  const decoded = decodeEvent(event);
  const { shown } = event;
  return shown ? { ...decoded, data: fillPlaces(decoded.data, shown.map(show)) } : decoded;
}

/** Decodes an event with decrypted texts. Throws its `unreadable` error, or SyntaxError. */
export const decodeOpenedEvent = (event: ReadableEvent): OpenedEvent => ({
  ...decodeReadable(event, stringOf),
  erased: event.erased === true,
  key: event.key,
});

/**
 * Decodes an event of `decryptTexts` with the salt and the commitment of each text, from which the
 * hash can be recomputed; erased texts are marked. Throws as decodeOpenedEvent.
 */
export const decodeDisclosedEvent = (event: ReadableEvent): RecordedEvent =>
  decodeReadable(event, (text) => text);

/**
 * Decodes stored events with their texts. Throws `key_missing`, `event_invalid` for an invalid
 * ciphertext, `store_unavailable`, SyntaxError.
 */
export const openEvents = async (
  keys: ReadingKeys,
  events: readonly StoredEvent[],
): Promise<OpenedEvent[]> => (await decryptTexts(keys, events)).map(decodeOpenedEvent);

/**
 * Decodes stored events with the salt and the commitment of each text, from which the hash can be
 * recomputed; erased texts are marked. Throws as openEvents.
 */
export const discloseEvents = async (
  keys: ReadingKeys,
  events: readonly StoredEvent[],
): Promise<RecordedEvent[]> => (await decryptTexts(keys, events)).map(decodeDisclosedEvent);
