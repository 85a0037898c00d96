import type { EncodedEvent, EventStore, Position } from '../ports/eventStore.ts';
import { canonicalJson } from './canonicalJson.ts';
import { encodeEvent } from './codec.ts';
import type { EventMetadata, NewEvent, RecordedEvent } from './event.ts';
import { eventHash, GENESIS_HASH } from './hashChain.ts';
import type { TextKey } from './encryption/protectedText.ts';

/** The last event of a stream, as far as the next append needs it. */
export interface StreamHead {
  /** -1 for a stream that does not exist. */
  revision: number;
  hash: string;
  /** The key of the stream's texts, when it is known. */
  key?: TextKey | undefined;
}

export const NO_STREAM: StreamHead = { revision: -1, hash: GENESIS_HASH };

/** The head of a stream after `event`; `before` supplies the key when the event has none. */
export const headOf = (
  event: RecordedEvent & { key?: TextKey | undefined },
  before?: StreamHead,
): StreamHead => ({
  revision: event.revision,
  hash: event.metadata.hash,
  key: event.key ?? before?.key,
});

export type Authorship = Omit<EventMetadata, 'prev_hash' | 'hash'>;

/** Encodes sealed events as the continuation of a stream's hash chain. */
export function chainEvents(
  stream: string,
  head: StreamHead,
  events: readonly NewEvent[],
  authorship: Authorship,
): { encoded: EncodedEvent[]; head: StreamHead } {
  let { revision, hash } = head;
  const { account_id, causation_id, key_id, recorded_at, request_id } = authorship;
  // In order, which canonicalJson writes in a third of the time.
  const metadata = canonicalJson({ account_id, causation_id, key_id, recorded_at, request_id });
  const encoded = events.map((event) => {
    revision += 1;
    const { id, type } = event;
    const data = canonicalJson(event.data);
    const prev_hash = hash;
    hash = eventHash(prev_hash, { id, stream, revision, type, data, metadata });
    return encodeEvent(event, data, { ...authorship, prev_hash, hash });
  });
  return { encoded, head: { ...head, revision, hash } };
}

/** Sealed events, at least one, of the same author and time. */
interface AuthoredEvents {
  events: readonly NewEvent[];
  authorship: Authorship;
  /** The key that sealed the texts of the events; undefined for events without texts. */
  key?: TextKey | undefined;
}

export interface AppendedBatch {
  head: StreamHead;
  /** Position of the last event. */
  position: Position;
  lastEventId: string;
  recorded_at: string;
}

/** Appends events right after `head`. Resolves when they are durable. Throws like EventStore.append. */
export async function appendEvents(
  store: Pick<EventStore, 'append'>,
  target: { stream: string; head: StreamHead },
  { events, authorship, key = target.head.key }: AuthoredEvents,
): Promise<AppendedBatch> {
  const { encoded, head } = chainEvents(target.stream, target.head, events, authorship);
  const { position } = await store.append(
    target.stream,
    target.head.revision < 0 ? 'no_stream' : target.head.revision,
    encoded,
  );
  return {
    head: { ...head, key },
    position,
    lastEventId: events.at(-1)!.id,
    recorded_at: authorship.recorded_at,
  };
}
