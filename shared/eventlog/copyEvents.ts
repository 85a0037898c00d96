import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import { createChainChecker } from './reading/chainChecker.ts';
import type { EventLog, EventStore, Position, StoredEvent } from '../ports/eventStore.ts';

const BATCH_SIZE = 500;
/** An append is at most 1 MiB; runs of a stream's events are cut well below it. */
const MAX_RUN_BYTES = 512 * 1_024;

interface CopyProgress {
  events: number;
  /** Of the source; a later copy goes on after it. */
  position: Position | undefined;
}

interface Copy {
  from: Pick<EventLog, 'readStream' | 'subscribe'>;
  to: Pick<EventStore, 'append'>;
  after: Position | undefined;
  signal: AbortSignal;
  onProgress: (progress: CopyProgress) => void;
}

/** The events in their order, in runs of one stream that are small enough for one append. */
function runsOf(events: readonly StoredEvent[]): StoredEvent[][] {
  const runs: StoredEvent[][] = [];
  let bytes = 0;
  for (const event of events) {
    const size = Buffer.byteLength(event.data) + Buffer.byteLength(event.metadata);
    const run = runs.at(-1);
    if (run && run[0]!.stream === event.stream && bytes + size <= MAX_RUN_BYTES) {
      run.push(event);
      bytes += size;
    } else {
      runs.push([event]);
      bytes = size;
    }
  }
  return runs;
}

const otherHistory = (stream: string, cause: TurnlogError): TurnlogError =>
  new TurnlogError(
    'stream_conflict',
    `The target can't go on with the stream ${stream}: it has another history, or lacks what comes before. Copy from the beginning into a store that has nothing else. (${cause.message})`,
    { cause },
  );

async function appendRun(to: Copy['to'], run: readonly StoredEvent[]): Promise<void> {
  const { stream, revision } = run[0]!;
  try {
    await to.append(
      stream,
      revision === 0 ? 'no_stream' : revision - 1,
      run.map(({ id, type, data, metadata }) => ({ id, type, data, metadata })),
    );
  } catch (error) {
    throw isTurnlogError(error, 'stream_conflict') ? otherHistory(stream, error) : error;
  }
}

/**
 * Copies a log into another store, with the same ids and in the same order, and verifies the hash chains on the way. What
 * is there already is not written again, so a copy may be repeated. Resolves true at the end of the
 * source, false when the signal aborted first.
 * Errors: `event_invalid` that names the first event which does not fit its chain,
 * `stream_conflict` where the target has another history, `store_unavailable`.
 */
export async function copyEvents({ from, to, after, signal, onProgress }: Copy): Promise<boolean> {
  const faultOf = createChainChecker(from);
  let events = 0;
  for await (const batch of from.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
    for (const stored of batch.events) {
      const fault = await faultOf(stored);
      if (fault !== undefined)
        throw new TurnlogError(
          'event_invalid',
          `The event ${stored.id} (${stored.stream} revision ${stored.revision}) does not fit: ${fault}. Nothing from there on was copied.`,
        );
    }
    // One after the other: in another order they would have another transparency log.
    for (const run of runsOf(batch.events)) await appendRun(to, run);
    events += batch.events.length;
    onProgress({ events, position: batch.position ?? after });
    if (batch.caughtUp) return true;
  }
  return false;
}
