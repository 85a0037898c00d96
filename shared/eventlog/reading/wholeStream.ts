/**
 * Checks that a stream is intact: it starts at revision 0 with the opening event of its kind, no
 * revision is missing, and every event is known, can be decoded and matches its schema. Pure
 * functions over pages; readWhole.ts reads them.
 */
import { belongsIn, findOpeningType, type DomainEvent } from '../eventTypes.ts';
import { totalBytesOf, type ReadOptions, type StoredEvent } from '../../ports/eventStore.ts';
import { headOf, type StreamHead } from '../append.ts';
import { decodeEvent } from '../codec.ts';
import { isValidMetadata, toDomainEvent } from '../domainEvent.ts';
import { findChainFault, recordedHash } from '../hashChain.ts';
import { countTexts } from '../encryption/textLocations.ts';
import {
  decodeOpenedEvent,
  type OpenedEvent,
  type ReadableEvent,
} from '../encryption/openTexts.ts';
import type { StreamFlaw } from './streamDamage.ts';

/** An event as stored, with its texts, and as the domain knows it. */
export interface DecodedEvent {
  stored: StoredEvent;
  recorded: OpenedEvent;
  event: DomainEvent;
  /** The event from which `decodeDisclosedEvent` makes the form with commitments. */
  readable: ReadableEvent;
  /** The number of its protected texts. */
  texts: number;
}

/** The head of a stream after consecutive events, with the key of the last texts. */
export const headAfter = (head: StreamHead, events: readonly DecodedEvent[]): StreamHead =>
  events.reduce((before, { recorded }) => headOf(recorded, before), head);

/** The options and the result of a store's read. */
type StreamPage = ReadOptions & { events: readonly StoredEvent[] };

/** True for an opening event after revision 0, or another event at revision 0. */
function isOutOfOrder({ stream, revision }: StoredEvent, type: string): boolean {
  const opening = findOpeningType(stream);
  return opening !== undefined && (opening === type) !== (revision === 0);
}

/** Other programs choose type names; long ones are cut. */
const MAX_TYPE_CHARS = 64;

const describeRevision = ({ revision }: StoredEvent): string => `the event at revision ${revision}`;

/** Describes an event whose type does not belong in its stream. */
const describeForeignEvent = (stored: StoredEvent): string =>
  `${describeRevision(stored)} is of the type ${JSON.stringify(stored.type.slice(0, MAX_TYPE_CHARS))}, which does not belong there`;

/** Describes an event that a newer release wrote. */
const describeNewerEvent = (stored: StoredEvent): string =>
  `${describeRevision(stored)} is of the type ${JSON.stringify(stored.type.slice(0, MAX_TYPE_CHARS))}, which a newer release has written`;

/** True for an event whose hash is valid given its own prev_hash. */
function isChained(stored: StoredEvent): boolean {
  const recorded = decodeEvent(stored);
  const { revision, metadata } = recorded;
  const before = revision === 0 ? undefined : { revision: revision - 1, hash: metadata.prev_hash };
  return findChainFault(recorded, before) === undefined;
}

/** The decoded event, or why it is invalid. */
function decodeReadableEvent(
  readable: ReadableEvent,
): DecodedEvent | Omit<StreamFlaw, 'revision'> | string {
  const { stored = readable, unreadable } = readable;
  if (unreadable) return `a text of ${describeRevision(stored)} does not match its ciphertext`;
  try {
    const recorded = decodeOpenedEvent(readable);
    if (!isValidMetadata(recorded.metadata))
      return `the metadata of ${describeRevision(stored)} does not match its schema`;
    const event = toDomainEvent(recorded);
    if (!event && belongsIn(stored.stream, stored.type) && isChained(stored))
      return { reason: describeNewerEvent(stored), newer: true };
    if (!event || !belongsIn(stored.stream, event.type)) return describeForeignEvent(stored);
    if (isOutOfOrder(stored, event.type))
      return `${describeRevision(stored)} is of the type ${stored.type}`;
    return { stored, recorded, event, readable, texts: readable.texts ?? 0 };
  } catch {
    // The decoder's message may quote the content.
    return `the content of ${describeRevision(stored)} is not JSON or does not match its schema`;
  }
}

const missingRevision = (expected: number, actual: number): StreamFlaw =>
  expected === 0
    ? { reason: `it begins at revision ${actual}`, revision: 0 }
    : { reason: `revision ${expected} is missing`, revision: expected };

/** True when the page reached its limits, so that more events may follow. */
export const isFull = ({
  events,
  limit,
  maxBytes = Infinity,
}: Pick<StreamPage, 'events' | 'limit' | 'maxBytes'>): boolean =>
  events.length >= limit || totalBytesOf(events) >= maxBytes;

/**
 * The first missing revision of a page. A page that ends before its limits has met the end of the
 * stream in its direction, which backwards must be revision 0. An empty page of a read without
 * `from` is inconclusive: the stream may not exist or be deleted.
 */
function findRevisionFlaw(page: StreamPage): StreamFlaw | undefined {
  const { events, direction, from } = page;
  const step = direction === 'forwards' ? 1 : -1;
  let expected = from ?? (direction === 'forwards' ? 0 : events[0]?.revision);
  if (expected === undefined) return undefined;
  for (const { revision } of events) {
    if (revision !== expected) return missingRevision(expected, revision);
    expected += step;
  }
  return direction === 'backwards' && expected >= 0 && !isFull(page)
    ? missingRevision(0, expected + 1)
    : undefined;
}

/** True for an event with a text that is not protected. */
export const hasPlainText = ({ event, texts }: DecodedEvent): boolean => countTexts(event) > texts;

/**
 * The flaw of an event whose text is not protected although an earlier text of its stream is.
 * Streams from before texts were protected begin with plain texts, and continue with protected ones.
 */
export const plainTextFlaw = ({ stored }: DecodedEvent): StreamFlaw => ({
  reason: `${describeRevision(stored)} has a text that is not protected, after protected ones`,
  revision: stored.revision,
});

/** The flaw of the first plain text that is in an event with, or after, a protected one. */
export function findPlainTextFlaw(events: readonly DecodedEvent[]): StreamFlaw | undefined {
  const first = events.findIndex(({ texts }) => texts > 0);
  const plain = first < 0 ? undefined : events.slice(first).find(hasPlainText);
  return plain && plainTextFlaw(plain);
}

/** The decoded events, oldest first, or the flaw of the first invalid one. */
export function decodeReadableEvents(
  events: readonly ReadableEvent[],
): DecodedEvent[] | StreamFlaw {
  const decodedEvents: DecodedEvent[] = [];
  for (const stored of events) {
    const decoded = decodeReadableEvent(stored);
    if (typeof decoded === 'string') return { reason: decoded, revision: stored.revision };
    if ('reason' in decoded) return { ...decoded, revision: stored.revision };
    decodedEvents.push(decoded);
  }
  return decodedEvents;
}

const oldestFirst = ({ events, direction }: StreamPage): readonly StoredEvent[] =>
  direction === 'forwards' ? events : events.toReversed();

/** The events of a page, oldest first, or the flaw in their revisions. */
export const checkPage = (page: StreamPage): readonly StoredEvent[] | StreamFlaw =>
  findRevisionFlaw(page) ?? oldestFirst(page);

/** An event that was read or appended before. */
export interface KnownEvent extends Pick<StoredEvent, 'id' | 'revision'> {
  hash: string;
}

/** True when an event does not name the hash of the one before it. */
const hasBrokenLink = (events: readonly StoredEvent[]): boolean =>
  events.some(
    ({ metadata }, at) =>
      at > 0 && !metadata.includes(`"prev_hash":"${recordedHash(events[at - 1]!)}"`),
  );

/**
 * The events of a page after one that was read before, oldest first, or the flaw in their
 * revisions. Older events were decoded before: only their revisions, types and hashes
 * are checked. Undefined when the page does not contain the known event, or its hashes have changed.
 */
export function selectEventsAfter(
  page: StreamPage,
  { id, revision, hash }: KnownEvent,
): readonly StoredEvent[] | StreamFlaw | undefined {
  const events = oldestFirst(page);
  const knownIndex = events.findIndex((event) => event.id === id && event.revision === revision);
  const knownEvent = events[knownIndex];
  if (!knownEvent || recordedHash(knownEvent) !== hash || hasBrokenLink(events)) return undefined;
  const flaw = findRevisionFlaw(page);
  if (flaw) return flaw;
  const foreignEvent = events
    .slice(0, knownIndex)
    .find(({ stream, type }) => !belongsIn(stream, type));
  if (foreignEvent)
    return { reason: describeForeignEvent(foreignEvent), revision: foreignEvent.revision };
  return events.slice(knownIndex + 1);
}
