import { LRUCache } from 'lru-cache';
import { readPresentEvents } from '../eventlog/reading/readPresentEvents.ts';
import { recordedHash } from '../eventlog/hashChain.ts';
import { belongsIn, isErasure, type DomainEvent } from '../eventlog/eventTypes.ts';
import type { Erasure } from '../domain/schema.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { headOf, NO_STREAM } from '../eventlog/append.ts';
import { parseAccountId } from '../eventlog/reading/streamOwner.ts';
import { createPause, type Pause } from '../lib/concurrency/yieldToEventLoop.ts';
import { entriesUpTo } from '../lib/memory/entriesUpTo.ts';
import { decodeEvent } from '../eventlog/codec.ts';
import { isValidMetadata, toDomainEvent } from '../eventlog/domainEvent.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { withEmptyTexts } from '../eventlog/encryption/openTexts.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { damageReason } from '../eventlog/reading/streamDamage.ts';
import { streamKind } from '../eventlog/streams.ts';
import { LIMITS } from '../limits.ts';
import type { StoredEvent } from '../ports/eventStore.ts';
import type { LoadedStream, TargetStream } from '../commandHandling/targetStream.ts';
import type { Erasable } from '../domain/feature.ts';
import { FEATURE_STREAMS } from '../features.ts';
import type { Keyring } from '../eventlog/encryption/keyring.ts';
import { createOwnKeys, type OwnKeys } from './ownKeys.ts';

const ERASABLE = new Map(
  FEATURE_STREAMS.flatMap((stream): [string, unknown][] =>
    'erasure' in stream ? [[stream.kind, stream.erasure]] : [],
  ),
);

/** The erasure rules of a stream. Throws a plain Error for a kind without texts. */
function erasableOf(stream: string): Erasable<unknown, DomainEvent> {
  const erasure = ERASABLE.get(streamKind(stream));
  if (!erasure) throw new Error(`streams such as ${stream} have no texts`);
  return erasure as Erasable<unknown, DomainEvent>;
}

/** Findings about a stream to be erased. No text is decrypted, because keys may be lost. */
export interface ErasureFindings {
  stream: string;
  /** The keys of the ciphertexts that were found. */
  keys: OwnKeys;
  /** The last readable event, if any. */
  last: RecordedEvent | undefined;
  /**
   * The last readable event that an erasure does not append; undefined for a complete erasure,
   * whose events are not read again.
   */
  activity: RecordedEvent | undefined;
  /** A clause about the unreadable part of the stream; undefined when everything was readable. */
  flaw: string | undefined;
  /** The state after the events that were read. */
  folded: unknown;
}
export type LoadedForErasure = LoadedStream<ErasureFindings>;

/** Erased streams whose keys are held in memory; others are read again. */
const REMEMBERED_ERASURES = 2_000;

interface CompleteErasure {
  /** The event that records it. */
  last: RecordedEvent;
  /** All keys of the stream. */
  key_ids: readonly string[];
}

/**
 * The erased streams that were read as a whole, by name and hash of their erasure. The event itself
 * does not tell whether it names all keys.
 */
const completeErasures = new LRUCache<string, CompleteErasure>(entriesUpTo(REMEMBERED_ERASURES));

const erasureKey = (stream: string, hash: string): string => `${stream} ${hash}`;

/** Decodes an event without its texts. The folded state does not depend on them. */
function decodeWithoutTexts(stored: StoredEvent): { recorded: RecordedEvent; event?: DomainEvent } {
  const recorded = decodeEvent(withEmptyTexts(stored));
  if (!isValidMetadata(recorded.metadata) || !belongsIn(stored.stream, stored.type))
    throw new Error('it is none of ours');
  const event = toDomainEvent(recorded);
  return { recorded, ...(event && { event }) };
}

function follow(loaded: LoadedForErasure, stored: StoredEvent): void {
  const { state } = loaded;
  const expected = loaded.head.revision + 1;
  if (stored.revision !== expected) state.flaw ??= `revision ${expected} is missing`;
  loaded.head = { ...loaded.head, revision: stored.revision };
  try {
    const { recorded, event } = decodeWithoutTexts(stored);
    loaded.head = headOf(recorded);
    state.last = recorded;
    if (!isErasure(recorded.type) && recorded.type !== 'session.turn_interrupted.v1')
      state.activity = recorded;
    if (!event) return;
    state.folded = erasableOf(state.stream).evolve(state.folded, event);
  } catch {
    state.flaw ??= `the event at revision ${stored.revision} can't be understood`;
  }
}

type Read = Pick<StreamSource['store'], 'readStream'>;

const PAGES = { limit: 100, maxBytes: LIMITS.store.pageBytes } as const;

/** Reads forward from the current head. */
async function readOn(store: Read, loaded: LoadedForErasure, pause: Pause): Promise<void> {
  for (;;) {
    await pause();
    const from = loaded.head.revision + 1;
    const options = { ...PAGES, direction: 'forwards', from } as const;
    const page = await store.readStream(loaded.state.stream, options);
    if (page.length === 0) return;
    await loaded.state.keys.add(page);
    for (const stored of page) follow(loaded, stored);
  }
}

/** One page backwards from a revision, or from the end; empty if the store reports damage. */
const pageBack = (
  store: Read,
  stream: string,
  { from, limit = PAGES.limit }: { from?: number; limit?: number } = {},
): Promise<StoredEvent[]> =>
  readPresentEvents(store, stream, {
    ...PAGES,
    limit,
    direction: 'backwards',
    ...(from !== undefined && { from }),
  });

/**
 * Reads a stream backwards from its end as far as possible, when the store can't read on from its
 * beginning.
 */
async function readBack(store: Read, loaded: LoadedForErasure, pause: Pause): Promise<void> {
  const { state } = loaded;
  const knownRevision = loaded.head.revision;
  let page = await pageBack(store, state.stream);
  if (page[0]) follow(loaded, page[0]);
  while (page.length > 0) {
    await state.keys.add(page);
    await pause();
    const from = page.at(-1)!.revision - 1;
    page = from > knownRevision ? await pageBack(store, state.stream, { from }) : [];
  }
}

/**
 * Takes the findings of an earlier read of the whole stream, if the stream ends with the same
 * erasure and none of its keys exists. Returns false for any other stream.
 */
async function recallErasure(loaded: LoadedForErasure, end: StoredEvent): Promise<boolean> {
  const { state } = loaded;
  const completeErasure = completeErasures.get(erasureKey(state.stream, recordedHash(end)));
  if (!completeErasure) return false;
  await state.keys.examine(completeErasure.key_ids);
  // Keys that exist: the stream's texts tell whether they are its own.
  if (state.keys.doubtful.size > 0) return false;
  state.last = completeErasure.last;
  loaded.head = headOf(completeErasure.last);
  return true;
}

function rememberErasure({ stream, last, flaw, keys }: ErasureFindings): void {
  if (!last || !isErasure(last.type) || flaw !== undefined || keys.doubtful.size > 0) return;
  // The policies of an erased account are taken from its events.
  if (streamKind(stream) === 'account') return;
  completeErasures.set(erasureKey(stream, last.metadata.hash), { last, key_ids: [...keys.own] });
}

async function read(store: Read, loaded: LoadedForErasure): Promise<void> {
  const { state } = loaded;
  const [end] = await pageBack(store, state.stream, { limit: 1 });
  if (end && (await recallErasure(loaded, end))) return;
  const pause = createPause(() => (end && parseAccountId(end)) ?? state.stream);
  try {
    await readOn(store, loaded, pause);
  } catch (error) {
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    state.flaw ??= damageReason(state.stream, error);
    await readBack(store, loaded, pause);
  }
  rememberErasure(state);
}

/** Erases a stream once, whether it is damaged or not. */
function decide(erasure: Erasure, { stream, folded, flaw, last }: ErasureFindings): DomainEvent[] {
  if (last && isErasure(last.type)) return [];
  const erasable = erasableOf(stream);
  return flaw === undefined ? erasable.decide(erasure, folded) : [erasable.event(erasure)];
}

/**
 * A target for the erasure of a stream in any condition. The stream is read page by page. After a
 * conflict, only later events are read.
 */
export function createErasureTarget(
  stream: string,
  keys: Pick<Keyring, 'examine'>,
): TargetStream<Erasure, ErasureFindings, DomainEvent, LoadedForErasure> {
  const folded = erasableOf(stream).initialState;
  const initialState = {
    stream,
    keys: createOwnKeys(keys, stream),
    last: undefined,
    activity: undefined,
    flaw: undefined,
    folded,
  };
  const loaded: LoadedForErasure = { state: initialState, head: NO_STREAM };
  return {
    stream,
    decider: { initialState, decide, evolve: (state) => state },
    async load({ store }) {
      await read(store, loaded);
      return loaded;
    },
  };
}
