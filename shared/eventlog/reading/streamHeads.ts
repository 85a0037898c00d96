import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { headOf, type StreamHead } from '../append.ts';
import { decodeEvent } from '../codec.ts';
import type { EventStore, StoredEvent } from '../../ports/eventStore.ts';

const BATCH_SIZE = 1_000;

/**
 * The head of every stream of a log, and the id of the log's first event, which identifies the log.
 */
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
    // An event that can't be decoded has no hash.
  }
  throw new TurnlogError(
    'event_invalid',
    `The event ${stored.id} (${stored.stream} revision ${stored.revision}) has no hash, so its stream has no head. Run \`audit verify\` to find all such events.`,
  );
}

/**
 * Reads the whole log once and resolves with the head of every stream; undefined when the signal
 * aborts first. Holds about 300 bytes per stream. Throws `event_invalid` for an empty log or an
 * event without a hash, `store_unavailable`.
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
      throw new TurnlogError('event_invalid', 'The log is empty and has no heads yet.');
    return { log_id, heads };
  }
  return undefined;
}
