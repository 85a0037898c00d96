import { belongsIn, isErasure, type DomainEvent } from '../eventlog/eventTypes.ts';
import type { Erasure } from '../domain/schema.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { headOf, NO_STREAM } from '../eventlog/append.ts';
import { decodeEvent } from '../eventlog/codec.ts';
import { isValidMetadata, toDomainEvent } from '../eventlog/domainEvent.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { addKeyIds, replaceBoxes } from '../eventlog/encryption/protectedJson.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { damageReason } from '../eventlog/reading/streamDamage.ts';
import { streamId, streamKind } from '../eventlog/streams.ts';
import { LIMITS } from '../limits.ts';
import { wordsKeyId } from '../search/wordTokens.ts';
import type { StoredEvent } from '../ports/eventStore.ts';
import type { LoadedStream, TargetStream } from '../commandHandling/targetStream.ts';
import type { Erasable } from '../domain/feature.ts';
import { FEATURE_STREAMS } from '../features.ts';

const ERASABLE = new Map(
  FEATURE_STREAMS.flatMap((stream): [string, unknown][] =>
    'erasure' in stream ? [[stream.kind, stream.erasure]] : [],
  ),
);

/** How a stream is erased. Throws a plain Error for a kind without texts. */
function erasableOf(stream: string): Erasable<unknown, DomainEvent> {
  const erasure = ERASABLE.get(streamKind(stream));
  if (!erasure) throw new Error(`streams such as ${stream} have no texts`);
  return erasure as Erasable<unknown, DomainEvent>;
}

/** What a stream says to its erasure. No text is opened for it: keys may have been lost. */
export interface ErasureFindings {
  stream: string;
  /** Of the boxes that were found, and of an erasure that is there already. */
  keyIds: Set<string>;
  /** The last event that can be read; undefined where there is none. */
  last: RecordedEvent | undefined;
  /** Half a sentence on what could not be read; undefined where all was. */
  flaw: string | undefined;
  /** What the events come to. */
  folded: unknown;
}
export type LoadedForErasure = LoadedStream<ErasureFindings>;

const PAGE = 500;
const NO_TEXT = '""';

/** Events come to what they do with and without their texts. */
function decodeWithoutTexts(stored: StoredEvent): { recorded: RecordedEvent; event?: DomainEvent } {
  const recorded = decodeEvent({ ...stored, data: replaceBoxes(stored.data, () => NO_TEXT) });
  if (!isValidMetadata(recorded.metadata) || !belongsIn(stored.stream, stored.type))
    throw new Error('it is none of ours');
  const event = toDomainEvent(recorded);
  return { recorded, ...(event && { event }) };
}

function follow(found: LoadedForErasure, stored: StoredEvent): void {
  const { state } = found;
  const due = found.head.revision + 1;
  if (stored.revision !== due) state.flaw ??= `revision ${due} is missing`;
  // What is not JSON may hold boxes all the same.
  addKeyIds(stored.data, state.keyIds);
  found.head = { ...found.head, revision: stored.revision };
  try {
    const { recorded, event } = decodeWithoutTexts(stored);
    found.head = headOf(recorded);
    state.last = recorded;
    if (!event) return;
    state.folded = erasableOf(state.stream).evolve(state.folded, event);
    if (isErasure(event.type))
      for (const id of (event.data as Erasure).key_ids) state.keyIds.add(id);
  } catch {
    state.flaw ??= `the event at revision ${stored.revision} can't be understood`;
  }
}

type Read = Pick<StreamSource['store'], 'readStream'>;

const PAGES = { limit: PAGE, maxBytes: LIMITS.store.pageBytes } as const;

/** Goes on from the head that was found. */
async function readOn(store: Read, found: LoadedForErasure): Promise<void> {
  for (;;) {
    const from = found.head.revision + 1;
    const options = { ...PAGES, direction: 'forwards', from } as const;
    const page = await store.readStream(found.state.stream, options);
    if (page.length === 0) return;
    for (const stored of page) follow(found, stored);
  }
}

/** A page from the end on; empty where the store shows none. */
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

/** What can be had of a stream from its end on, where the store can't go on from its beginning. */
async function readBack(store: Read, found: LoadedForErasure): Promise<void> {
  const { state } = found;
  const known = found.head.revision;
  let page = await pageBack(store, state.stream, undefined);
  if (page[0]) follow(found, page[0]);
  while (page.length > 0) {
    for (const { data } of page) addKeyIds(data, state.keyIds);
    const from = page.at(-1)!.revision - 1;
    page = from > known ? await pageBack(store, state.stream, from) : [];
  }
}

async function read(store: Read, found: LoadedForErasure): Promise<void> {
  try {
    await readOn(store, found);
  } catch (error) {
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    found.state.flaw ??= damageReason(found.state.stream, error);
    await readBack(store, found);
  }
}

/** Damaged or not, a stream is erased once. */
function decide(erasure: Erasure, { stream, folded, flaw, last }: ErasureFindings): DomainEvent[] {
  if (last && isErasure(last.type)) return [];
  const erasable = erasableOf(stream);
  return flaw === undefined ? erasable.decide(erasure, folded) : [erasable.event(erasure)];
}

/** Keys that no box of the stream names: what is found by words of an account goes with it. */
const ownKeysOf = (stream: string): string[] =>
  streamKind(stream) === 'account' ? [wordsKeyId(streamId(stream))] : [];

/**
 * A stream to be erased, whatever it holds: read page by page, and after a conflict only what has
 * come since.
 */
export function createErasureTarget(
  stream: string,
): TargetStream<Erasure, ErasureFindings, DomainEvent, LoadedForErasure> {
  const folded = erasableOf(stream).initialState;
  const initialState = {
    stream,
    keyIds: new Set(ownKeysOf(stream)),
    last: undefined,
    flaw: undefined,
    folded,
  };
  const found: LoadedForErasure = { state: initialState, head: NO_STREAM };
  return {
    stream,
    decider: { initialState, decide, evolve: (state) => state },
    async load({ store }) {
      await read(store, found);
      return found;
    },
  };
}
