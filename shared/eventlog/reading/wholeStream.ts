/**
 * What makes a stream whole: it begins at revision 0 with the event that begins such a stream, no
 * revision is missing, and every event is known, can be decoded and fits its schema. Pure functions
 * over pages; readWhole.ts does the reading.
 */
import { belongsIn, openingOf, type DomainEvent } from '../eventTypes.ts';
import { bytesOf, type ReadOptions, type StoredEvent } from '../../ports/eventStore.ts';
import { headOf, type StreamHead } from '../append.ts';
import { decodeEvent } from '../codec.ts';
import { isValidMetadata, toDomainEvent } from '../domainEvent.ts';
import { chainFault } from '../hashChain.ts';
import { openedEvent, type OpenedEvent, type ReadableEvent } from '../encryption/openTexts.ts';
import type { StreamFlaw } from './streamDamage.ts';

/** An event as it was recorded, and as the domain knows it. */
export interface DecodedEvent {
  /** As it is stored. */
  stored: StoredEvent;
  recorded: OpenedEvent;
  event: DomainEvent;
}

/** The head of a stream after events that follow one another; the key is that of the last texts. */
export const headAfter = (head: StreamHead, events: readonly DecodedEvent[]): StreamHead =>
  events.reduce((before, { recorded }) => headOf(recorded, before), head);

/** What was asked of a store, and what came. */
type StreamPage = ReadOptions & { events: readonly StoredEvent[] };

/** True for an event that begins its stream where none does, or does not where one has to. */
function isOutOfOrder({ stream, revision }: StoredEvent, type: string): boolean {
  const opening = openingOf(stream);
  return opening !== undefined && (opening === type) !== (revision === 0);
}

/** Names of types are others' text; longer ones are cut. */
const MAX_TYPE_CHARS = 64;

const describeRevision = ({ revision }: StoredEvent): string => `the event at revision ${revision}`;

/** What is said of an event of a type that its stream can't hold. */
const describeForeignEvent = (stored: StoredEvent): string =>
  `${describeRevision(stored)} is of the type ${JSON.stringify(stored.type.slice(0, MAX_TYPE_CHARS))}, which does not belong there`;

/** What is said of an event that Turnlog has written, of a type that this release does not know. */
const describeNewerEvent = (stored: StoredEvent): string =>
  `${describeRevision(stored)} is of the type ${JSON.stringify(stored.type.slice(0, MAX_TYPE_CHARS))}, which a newer release has written`;

/** True for an event whose hash is right after the event before it, as the event names that. */
function isChained(stored: StoredEvent): boolean {
  const recorded = decodeEvent(stored);
  const { revision, metadata } = recorded;
  const before = revision === 0 ? undefined : { revision: revision - 1, hash: metadata.prev_hash };
  return chainFault(recorded, before) === undefined;
}

/** The event, or why it is none of ours. */
function decodeReadableEvent(
  readable: ReadableEvent,
): DecodedEvent | Omit<StreamFlaw, 'revision'> | string {
  const { stored = readable, unreadable } = readable;
  if (unreadable) return `a text of ${describeRevision(stored)} is not what was closed in its box`;
  try {
    const recorded = openedEvent(readable);
    if (!isValidMetadata(recorded.metadata))
      return `the metadata of ${describeRevision(stored)} does not fit its schema`;
    const event = toDomainEvent(recorded);
    if (!event && belongsIn(stored.stream, stored.type) && isChained(stored))
      return { reason: describeNewerEvent(stored), newer: true };
    if (!event || !belongsIn(stored.stream, event.type)) return describeForeignEvent(stored);
    if (isOutOfOrder(stored, event.type))
      return `${describeRevision(stored)} is of the type ${stored.type}`;
    return { stored, recorded, event };
  } catch {
    // What can't be decoded says so in words that may quote it.
    return `the content of ${describeRevision(stored)} is not JSON or does not fit its schema`;
  }
}

const missing = (due: number, found: number): StreamFlaw =>
  due === 0
    ? { reason: `it begins at revision ${found}`, revision: 0 }
    : { reason: `revision ${due} is missing`, revision: due };

/** True where the page holds all that was asked for at most: more may follow. */
export const isFull = ({
  events,
  limit,
  maxBytes = Infinity,
}: Pick<StreamPage, 'events' | 'limit' | 'maxBytes'>): boolean =>
  events.length >= limit || events.reduce((sum, event) => sum + bytesOf(event), 0) >= maxBytes;

/**
 * What is wrong with the revisions of a page. A page that ends before its limits has met the end of
 * the stream in its direction, which backwards must be revision 0. An empty page of a read without
 * `from` tells nothing: there is no such stream, or it is gone.
 */
function findRevisionFlaw(page: StreamPage): StreamFlaw | undefined {
  const { events, direction, from } = page;
  const step = direction === 'forwards' ? 1 : -1;
  let due = from ?? (direction === 'forwards' ? 0 : events[0]?.revision);
  if (due === undefined) return undefined;
  for (const { revision } of events) {
    if (revision !== due) return missing(due, revision);
    due += step;
  }
  return direction === 'backwards' && due >= 0 && !isFull(page) ? missing(0, due + 1) : undefined;
}

/** What readable events say, oldest first, or what is wrong with the first that says nothing. */
export function decodeReadableEvents(
  events: readonly ReadableEvent[],
): DecodedEvent[] | StreamFlaw {
  const known: DecodedEvent[] = [];
  for (const stored of events) {
    const understood = decodeReadableEvent(stored);
    if (typeof understood === 'string') return { reason: understood, revision: stored.revision };
    if ('reason' in understood) return { ...understood, revision: stored.revision };
    known.push(understood);
  }
  return known;
}

const oldestFirst = ({ events, direction }: StreamPage): readonly StoredEvent[] =>
  direction === 'forwards' ? events : events.toReversed();

/** The events of a page, oldest first, or what is wrong with their places. */
export const checkPage = (page: StreamPage): readonly StoredEvent[] | StreamFlaw =>
  findRevisionFlaw(page) ?? oldestFirst(page);

/**
 * The events of a page that follow one which was read before, oldest first, or what is wrong with
 * their places. What was understood once is not read again: of the older ones only their places and
 * types are looked at. Undefined where the page does not hold the known event.
 */
export function checkNewEvents(
  page: StreamPage,
  { id, revision }: Pick<StoredEvent, 'id' | 'revision'>,
): readonly StoredEvent[] | StreamFlaw | undefined {
  const events = oldestFirst(page);
  const joint = events.findIndex((event) => event.id === id && event.revision === revision);
  if (joint === -1) return undefined;
  const flaw = findRevisionFlaw(page);
  if (flaw) return flaw;
  const misfit = events.slice(0, joint).find(({ stream, type }) => !belongsIn(stream, type));
  if (misfit) return { reason: describeForeignEvent(misfit), revision: misfit.revision };
  return events.slice(joint + 1);
}
