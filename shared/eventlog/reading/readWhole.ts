import { isErasure } from '../eventTypes.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { SLICE_BYTES, yieldToEventLoop } from '../../lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../../limits.ts';
import type { ReadOptions, StoredEvent } from '../../ports/eventStore.ts';
import { decryptTexts } from '../encryption/openTexts.ts';
import { hasCiphertexts } from '../encryption/protectedJson.ts';
import { toDamageError, reportDamage, reportLostKey, type StreamSource } from './reportDamage.ts';
import { endsWithErasure } from './erasureLookup.ts';
import { withReadMemory } from './readMemory.ts';
import type { StreamFlaw } from './streamDamage.ts';
import { readUntilComplete } from './readUntilComplete.ts';
import {
  selectEventsAfter,
  checkPage,
  decodeReadableEvents,
  findPlainTextFlaw,
  hasPlainText,
  plainTextFlaw,
  type DecodedEvent,
  type KnownEvent,
} from './wholeStream.ts';

async function readStored(
  source: StreamSource,
  stream: string,
  options: ReadOptions,
): Promise<StoredEvent[]> {
  try {
    return await source.store.readStream(stream, options);
  } catch (error) {
    throw isTurnlogError(error, 'stream_damaged')
      ? await toDamageError(source, stream, error)
      : error;
  }
}

/**
 * Reads the newest page of a stream, which must reach the newest event that this process has appended
 * or compared, and saves the lookup of the stream's erasure.
 */
async function readNewest(
  source: StreamSource,
  stream: string,
  options: ReadOptions,
): Promise<StoredEvent[]> {
  const { store } = source;
  const { events } = await readUntilComplete(source, stream, {
    async read() {
      // Before the read: an event that is appended meanwhile is not missing.
      const newestKnown = store.leaves?.newestKnown(stream) ?? -1;
      const stored = await readStored(source, stream, options);
      const end = { known: newestKnown, newest: stored[0]?.revision ?? -1 };
      const missing = await store.leaves?.findMissing(stream, end);
      return { events: stored, missing };
    },
    findFlaw: ({ missing }) => missing,
  });
  const [last] = events;
  if (last) store.keys.noteLastEvent(stream, last.type);
  return events;
}

const isFlaw = (checked: readonly unknown[] | StreamFlaw): checked is StreamFlaw =>
  !Array.isArray(checked);

/**
 * Requires that a stream with destroyed keys records its erasure: a writer to the log
 * could name a destroyed key in a ciphertext. An erasure appended after the page was read is the
 * stream's last event.
 */
async function requireErasure(
  source: StreamSource,
  stream: string,
  events: readonly DecodedEvent[],
): Promise<void> {
  const erasedEvent = events.find(({ recorded }) => recorded.erased)?.recorded;
  if (!erasedEvent || events.some(({ event }) => isErasure(event.type))) return;
  if (await endsWithErasure(source.store, stream)) return;
  const { revision } = erasedEvent;
  const reason = `the key of a text of the event at revision ${revision} is destroyed, but the stream records no erasure`;
  throw await reportDamage(source, stream, { reason, revision });
}

/** Decodes events of which decrypting and parsing takes some milliseconds at most. */
async function decodeSlice(
  source: StreamSource,
  stream: string,
  events: readonly StoredEvent[],
): Promise<DecodedEvent[]> {
  const readable = await decryptTexts(source.store.keys, events);
  for (const { unreadable } of readable)
    if (isTurnlogError(unreadable, 'key_missing'))
      throw await reportLostKey(source, stream, unreadable);
  const decoded = decodeReadableEvents(readable);
  if (isFlaw(decoded)) {
    // A type that no release knows may be a forger's. Only an event with a leaf is of a newer one.
    if (decoded.newer) await requireLeaves(source, stream, events);
    throw await reportDamage(source, stream, decoded);
  }
  return decoded;
}

/** The text whose processing takes as long as the rest of the work on an event. */
const CHARS_PER_EVENT = 512;

/** Decodes events, yielding to the event loop after those that reach the size of a slice. */
async function decodeInSlices(
  source: StreamSource,
  stream: string,
  events: readonly StoredEvent[],
): Promise<DecodedEvent[]> {
  const decoded: DecodedEvent[] = [];
  let slice: StoredEvent[] = [];
  let chars = 0;
  for (const event of events) {
    slice.push(event);
    chars += event.data.length + CHARS_PER_EVENT;
    if (chars < SLICE_BYTES) continue;
    decoded.push(...(await decodeSlice(source, stream, slice)));
    [slice, chars] = [[], 0];
    await yieldToEventLoop(decoded.at(-1)!.recorded.metadata.account_id);
  }
  if (slice.length > 0) decoded.push(...(await decodeSlice(source, stream, slice)));
  return decoded;
}

/**
 * Decodes events whose revisions were checked, or throws the flaw that the check found. Events of
 * which `areOwn` says that this process has appended them are not compared again.
 */
async function decodeOrReport(
  source: StreamSource,
  stream: string,
  checkedEvents: readonly StoredEvent[] | StreamFlaw,
  areOwn = false,
): Promise<DecodedEvent[]> {
  if (isFlaw(checkedEvents)) throw await reportDamage(source, stream, checkedEvents);
  const decoded = await decodeInSlices(source, stream, checkedEvents);
  if (!areOwn) {
    await requireLeaves(source, stream, checkedEvents);
    await requireLegacy(source, stream, decoded);
  }
  await requireErasure(source, stream, decoded);
  return decoded;
}

/** Requires that events fit their hashes and their leaves in the transparency log. */
async function requireLeaves(
  source: StreamSource,
  stream: string,
  events: readonly StoredEvent[],
): Promise<void> {
  const flaw = events.length > 0 ? await source.store.leaves?.findFlaw(events) : undefined;
  if (flaw) throw await reportDamage(source, stream, flaw);
}

/** The first events of a stream, of which one has a text in every stream with texts. */
const BEGINNING = 8;

/**
 * Requires that a stream with plain texts is from before texts were protected: its first text is
 * plain, too. Anyone who can write to the log could replace a protected text by a string.
 */
async function requireLegacy(
  source: StreamSource,
  stream: string,
  events: readonly DecodedEvent[],
): Promise<void> {
  const flaw = findPlainTextFlaw(events);
  if (flaw) throw await reportDamage(source, stream, flaw);
  const plain = events.find(hasPlainText);
  if (!plain || events[0]?.stored.revision === 0) return;
  const maxBytes = LIMITS.store.pageBytes;
  const options = { direction: 'forwards', from: 0, limit: BEGINNING, maxBytes } as const;
  const beginning = await readStored(source, stream, options);
  const before = beginning.filter(({ revision }) => revision < plain.stored.revision);
  if (before.some(({ data }) => hasCiphertexts(data)))
    throw await reportDamage(source, stream, plainTextFlaw(plain));
  await requireLeaves(source, stream, beginning);
}

/**
 * Reads a page of a stream, oldest first, and requires every event to be present and known. Throws
 * `stream_damaged` (recorded), `release_too_old`, `key_missing`, `store_unavailable`, and what
 * `reserveRead` throws.
 */
export const readPage = (
  source: StreamSource,
  stream: string,
  options: ReadOptions,
): Promise<DecodedEvent[]> =>
  withReadMemory(source, async () => {
    const isNewest = options.direction === 'backwards' && options.from === undefined;
    const read = isNewest ? readNewest : readStored;
    const events = await read(source, stream, options);
    return decodeOrReport(source, stream, checkPage({ ...options, events }));
  });

export interface NewStreamEvents {
  /** The events after the known event, oldest first. */
  events: DecodedEvent[];
  /** True when the page reached revision 0. */
  reachesBeginning: boolean;
}

/**
 * Reads the newest page of a stream and returns the events after one that was read before;
 * undefined when the page does not contain it. Throws as readPage.
 */
export async function readEventsSince(
  source: StreamSource,
  stream: string,
  knownEvent: KnownEvent,
  limit: number,
): Promise<NewStreamEvents | undefined> {
  const options = { direction: 'backwards', limit, maxBytes: LIMITS.store.pageBytes } as const;
  const events = await readNewest(source, stream, options);
  const newEvents = selectEventsAfter({ ...options, events }, knownEvent);
  const areOwn = Array.isArray(newEvents) && source.store.leaves?.areOwn(newEvents) === true;
  return (
    newEvents && {
      events: await decodeOrReport(source, stream, newEvents, areOwn),
      reachesBeginning: events.at(-1)?.revision === 0,
    }
  );
}

/** Finds the event at revision 0 of a stream; undefined for a stream without events. Throws as readPage. */
export async function findFirstEvent(
  source: StreamSource,
  stream: string,
): Promise<DecodedEvent | undefined> {
  const [first] = await readPage(source, stream, { direction: 'forwards', from: 0, limit: 1 });
  return first;
}

/** Reads the event at revision 0 of a stream that has later ones. Throws as readPage. */
export async function readFirstEvent(source: StreamSource, stream: string): Promise<DecodedEvent> {
  const first = await findFirstEvent(source, stream);
  if (first) return first;
  throw await reportDamage(source, stream, { reason: 'its beginning is missing', revision: 0 });
}
