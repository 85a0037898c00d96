import type { EncodedEvent, EventStore, Position } from '../ports/eventStore.ts';
import { canonicalJson } from './canonicalJson.ts';
import { encodeEvent } from './codec.ts';
import type { EventMetadata, NewEvent, RecordedEvent } from './event.ts';
import { eventHash, GENESIS_HASH } from './hashChain.ts';
import { giveWayForText } from '../giveWay.ts';

/** The last event of a stream, as far as the next append needs it. */
export interface StreamHead {
  /** -1 for a stream that does not exist. */
  revision: number;
  hash: string;
}

export const NO_STREAM: StreamHead = { revision: -1, hash: GENESIS_HASH };

export const headOf = (event: RecordedEvent): StreamHead => ({
  revision: event.revision,
  hash: event.metadata.hash,
});

export type Authorship = Omit<EventMetadata, 'prev_hash' | 'hash'>;

/** Encodes events as the continuation of a stream's hash chain. */
export function chainEvents(
  stream: string,
  head: StreamHead,
  events: readonly NewEvent[],
  authorship: Authorship,
): { encoded: EncodedEvent[]; head: StreamHead } {
  let { revision, hash } = head;
  const metadata = canonicalJson(authorship);
  const encoded = events.map((event) => {
    revision += 1;
    const { id, type } = event;
    const data = canonicalJson(event.data);
    const prev_hash = hash;
    hash = eventHash(prev_hash, { id, stream, revision, type, data, metadata });
    return encodeEvent(event, data, { ...authorship, prev_hash, hash });
  });
  return { encoded, head: { revision, hash } };
}

/** Characters of the event's own texts; what lies deeper is short. */
const charsOf = ({ data }: NewEvent): number =>
  Object.values(data).reduce<number>(
    (sum, value: unknown) => sum + (typeof value === 'string' ? value.length : 0),
    0,
  );

/**
 * Appends decided events after `head`. Resolves with the new head and the position of the last
 * event once they are durable.
 * Errors: those of EventStore.append.
 */
export async function appendEvents(
  store: Pick<EventStore, 'append'>,
  target: { stream: string; head: StreamHead },
  events: readonly NewEvent[],
  authorship: Authorship,
): Promise<{ head: StreamHead; position: Position }> {
  const chars = events.reduce((sum, event) => sum + charsOf(event), 0);
  await giveWayForText(authorship.account_id, chars);
  const { encoded, head } = chainEvents(target.stream, target.head, events, authorship);
  const { position } = await store.append(
    target.stream,
    target.head.revision < 0 ? 'no_stream' : target.head.revision,
    encoded,
  );
  return { head, position };
}
