import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { headOf, type StreamHead } from '../append.ts';
import { decodeEvent } from '../codec.ts';
import type { EventStore, StoredEvent } from '../../ports/eventStore.ts';

const BATCH_SIZE = 1_000;

/** The head of every stream of a log, and the id of its first event, which tells it from others. */
export interface StreamHeads {
  log_id: string;
  heads: ReadonlyMap<string, StreamHead>;
}

interface Reading {
  store: Pick<EventStore, 'subscribe'>;
  signal: AbortSignal;
  onProgress: (progress: { events: number; streams: number }) => void;
}

function recordedHead(stored: StoredEvent): StreamHead {
  try {
    const head = headOf(decodeEvent(stored));
    if (typeof head.hash === 'string') return head;
  } catch {
    // What can't be decoded has no hash either.
  }
  throw new TurnlogError(
    'event_invalid',
    `The event ${stored.id} (${stored.stream} revision ${stored.revision}) has no hash, so that its stream has no head. \`audit verify\` looks at all of them.`,
  );
}

/**
 * Reads the whole log once and resolves with the last event of every stream, undefined when the
 * signal aborts first. Holds all of them: about 300 bytes a stream, whatever its length.
 * Errors: `event_invalid` for an empty log and for an event without a hash, `store_unavailable`.
 */
export async function readStreamHeads({
  store,
  signal,
  onProgress,
}: Reading): Promise<StreamHeads | undefined> {
  const heads = new Map<string, StreamHead>();
  let log_id: string | undefined;
  let events = 0;
  for await (const batch of store.subscribe({ batchSize: BATCH_SIZE, signal })) {
    for (const stored of batch.events) heads.set(stored.stream, recordedHead(stored));
    log_id ??= batch.events[0]?.id;
    events += batch.events.length;
    onProgress({ events, streams: heads.size });
    if (!batch.caughtUp) continue;
    if (log_id === undefined)
      throw new TurnlogError('event_invalid', 'The log is empty: it has no heads yet.');
    return { log_id, heads };
  }
  return undefined;
}
