import { belongsIn, isErasure, type DomainEvent } from '../eventlog/eventTypes.ts';
import type { Erasure } from '../domain/schema.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { headOf, NO_STREAM } from '../eventlog/append.ts';
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
  /** The last readable event that an erasure does not append. */
  activity: RecordedEvent | undefined;
  /** A clause about the unreadable part of the stream; undefined when everything was readable. */
  flaw: string | undefined;
  /** The state after the readable events. */
  folded: unknown;
}
export type LoadedForErasure = LoadedStream<ErasureFindings>;

const PAGE = 500;

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

const PAGES = { limit: PAGE, maxBytes: LIMITS.store.pageBytes } as const;

/** Reads forward from the current head. */
async function readOn(store: Read, loaded: LoadedForErasure): Promise<void> {
  for (;;) {
    const from = loaded.head.revision + 1;
    const options = { ...PAGES, direction: 'forwards', from } as const;
    const page = await store.readStream(loaded.state.stream, options);
    if (page.length === 0) return;
    await loaded.state.keys.add(page);
    for (const stored of page) follow(loaded, stored);
  }
}

/** One page backwards from a revision, or from the end; empty if the store reports damage. */
const pageBack = (store: Read, stream: string, from: number | undefined): Promise<StoredEvent[]> =>
  store
    .readStream(stream, {
      ...PAGES,
      direction: 'backwards',
      ...(from !== undefined && { from }),
    })
    .catch((error: unknown) => {
      if (isTurnlogError(error, 'stream_damaged')) return [];
      throw error;
    });

/**
 * Reads a stream backwards from its end as far as possible, when the store can't read on from its
 * beginning.
 */
async function readBack(store: Read, loaded: LoadedForErasure): Promise<void> {
  const { state } = loaded;
  const knownRevision = loaded.head.revision;
  let page = await pageBack(store, state.stream, undefined);
  if (page[0]) follow(loaded, page[0]);
  while (page.length > 0) {
    await state.keys.add(page);
    const from = page.at(-1)!.revision - 1;
    page = from > knownRevision ? await pageBack(store, state.stream, from) : [];
  }
}

async function read(store: Read, loaded: LoadedForErasure): Promise<void> {
  try {
    await readOn(store, loaded);
  } catch (error) {
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    loaded.state.flaw ??= damageReason(loaded.state.stream, error);
    await readBack(store, loaded);
  }
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
