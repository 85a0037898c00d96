/**
 * What makes a stream whole: it begins at revision 0 with the event that begins such a stream, no revision is
 * missing, and every event is known, can be decoded and fits its schema. Pure functions over pages;
 * readWhole.ts does the reading.
 */
import type { DomainEvent } from '../domain/events.ts';
import { isTurnlogError, TurnlogError } from '../errors.ts';
import type { ReadOptions, StoredEvent } from '../ports/eventStore.ts';
import { decodeEvent } from './codec.ts';
import { metadataFits, toDomainEvent } from './domainEvent.ts';
import type { RecordedEvent } from './event.ts';
import { belongsIn } from './streams.ts';

/** An event as it was recorded, and as the domain knows it. */
export interface KnownEvent {
  recorded: RecordedEvent;
  event: DomainEvent;
}

/** Why a stream is not whole, in words that follow "it is damaged:", and the revision at which that shows. */
export interface Flaw {
  reason: string;
  /** Undefined where only the store knows it. */
  revision: number | undefined;
}

/** A flaw with its stream and what a reader gets of it. */
export interface StreamDamage extends Flaw {
  stream: string;
  /** The first and the last revision that were found; null when none was. */
  first_revision: number | null;
  last_revision: number | null;
}

/** What was asked of a store, and what came. */
export type StreamPage = ReadOptions & { events: readonly StoredEvent[] };

const OPENINGS: ReadonlySet<DomainEvent['type']> = new Set([
  'account.opened.v1',
  'agent.created.v1',
  'session.started.v1',
]);

/** Names of types are others' text; longer ones are cut. */
const LONGEST_TYPE = 64;

const named = ({ revision }: StoredEvent): string => `the event at revision ${revision}`;

/** What is said of an event of a type that its stream can't hold. */
const stranger = (stored: StoredEvent): string =>
  `${named(stored)} is of the type ${JSON.stringify(stored.type.slice(0, LONGEST_TYPE))}, which does not belong there`;

/** The event, or why it is none of ours. */
function understand(stored: StoredEvent): KnownEvent | string {
  try {
    const recorded = decodeEvent(stored);
    if (!metadataFits(recorded.metadata))
      return `the metadata of ${named(stored)} does not fit its schema`;
    const event = toDomainEvent(recorded);
    if (!event || !belongsIn(stored.stream, event.type)) return stranger(stored);
    if (OPENINGS.has(event.type) !== (stored.revision === 0))
      return `${named(stored)} is of the type ${stored.type}`;
    return { recorded, event };
  } catch {
    // What can't be decoded says so in words that may quote it.
    return `the content of ${named(stored)} is not JSON or does not fit its schema`;
  }
}

const missing = (due: number, found: number): Flaw =>
  due === 0
    ? { reason: `it begins at revision ${found}`, revision: 0 }
    : { reason: `revision ${due} is missing`, revision: due };

/**
 * What is wrong with the revisions of a page. A page that ends before its limit has met the end of the stream in
 * its direction, which backwards must be revision 0. An empty page of a read without `from` tells nothing: there
 * is no such stream, or it is gone.
 */
function misplaced({ events, direction, from, limit }: StreamPage): Flaw | undefined {
  const step = direction === 'forwards' ? 1 : -1;
  let due = from ?? (direction === 'forwards' ? 0 : events[0]?.revision);
  if (due === undefined) return undefined;
  for (const { revision } of events) {
    if (revision !== due) return missing(due, revision);
    due += step;
  }
  return direction === 'backwards' && events.length < limit && due >= 0
    ? missing(0, due + 1)
    : undefined;
}

function understandAll(events: readonly StoredEvent[]): KnownEvent[] | Flaw {
  const known: KnownEvent[] = [];
  for (const stored of events) {
    const understood = understand(stored);
    if (typeof understood === 'string') return { reason: understood, revision: stored.revision };
    known.push(understood);
  }
  return known;
}

const oldestFirst = ({ events, direction }: StreamPage): readonly StoredEvent[] =>
  direction === 'forwards' ? events : events.toReversed();

/** The events of a page, oldest first, or what is wrong with them. */
export const checkPage = (page: StreamPage): KnownEvent[] | Flaw =>
  misplaced(page) ?? understandAll(oldestFirst(page));

/**
 * The events of a page that follow one which was read before, oldest first, or what is wrong with the page. What
 * was understood once is not decoded again: of the older ones only their places and types are looked at.
 * Undefined where the page does not hold the known event.
 */
export function checkNews(
  page: StreamPage,
  { id, revision }: Pick<StoredEvent, 'id' | 'revision'>,
): KnownEvent[] | Flaw | undefined {
  const events = oldestFirst(page);
  const joint = events.findIndex((event) => event.id === id && event.revision === revision);
  if (joint === -1) return undefined;
  const flaw = misplaced(page);
  if (flaw) return flaw;
  const misfit = events.slice(0, joint).find(({ stream, type }) => !belongsIn(stream, type));
  if (misfit) return { reason: stranger(misfit), revision: misfit.revision };
  return understandAll(events.slice(joint + 1));
}

const damagedBecause = (stream: string): string => `The stream ${stream} is damaged: `;

/** Why a store says that a stream is damaged, in words that follow those that begin every such message. */
export const reasonOf = (stream: string, { message }: TurnlogError): string =>
  message.replace(damagedBecause(stream), '').replace(/\.$/, '');

/**
 * `stream_damaged`, whose message and details name the stream and what was found of it; the damage itself is the cause.
 * `path` says where the client named the stream: `path`, or a JSON pointer into its body.
 */
export function streamDamaged(damage: StreamDamage, path = 'path'): TurnlogError {
  const { stream, reason, first_revision: first, last_revision: last } = damage;
  const found =
    first === null || last === null
      ? 'no event of it was found'
      : `revisions ${first} to ${last} were found`;
  const message = `${damagedBecause(stream)}${reason}; ${found}.`;
  return new TurnlogError('stream_damaged', message, {
    details: { stream: { message, path } },
    cause: damage,
  });
}

/**
 * The damage that a `stream_damaged` of `streamDamaged` tells of; undefined for any other error, a store's own
 * included.
 */
export function damageOf(error: unknown): StreamDamage | undefined {
  const { cause } = isTurnlogError(error, 'stream_damaged') ? error : {};
  return typeof cause === 'object' && cause !== null && 'first_revision' in cause
    ? (cause as StreamDamage)
    : undefined;
}
