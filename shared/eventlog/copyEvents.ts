import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import { createChainChecker } from './reading/chainChecker.ts';
import type { EventLog, EventStore, Position, StoredEvent } from '../ports/eventStore.ts';

const BATCH_SIZE = 500;
/** An append is at most 1 MiB; runs of one stream's events stay well below it. */
const MAX_RUN_BYTES = 512 * 1_024;

interface CopyProgress {
  events: number;
  /** In the source; a later copy can resume after it. */
  position: Position | undefined;
}

interface Copy {
  from: Pick<EventLog, 'readStream' | 'subscribe'>;
  to: Pick<EventStore, 'append'>;
  after: Position | undefined;
  signal: AbortSignal;
  onProgress: (progress: CopyProgress) => void;
}

/** Splits events, in order, into runs of one stream that fit into one append. */
function splitIntoRuns(events: readonly StoredEvent[]): StoredEvent[][] {
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

const historyDiffersError = (stream: string, cause: TurnlogError): TurnlogError =>
  new TurnlogError(
    'stream_conflict',
    `The target can't continue the stream ${stream}: its history differs, or earlier events are missing. Copy from the beginning into an empty store. (${cause.message})`,
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
    throw isTurnlogError(error, 'stream_conflict') ? historyDiffersError(stream, error) : error;
  }
}

/**
 * Copies a log into another store with the same ids and order, and verifies its hash chains. Events
 * that the target already has are not written again, so a copy can be repeated. Resolves true at
 * the end of the source, false when the signal aborted first. Throws `event_invalid` for the first
 * event that breaks its chain, and `stream_conflict` when the target has a different history.
 */
export async function copyEvents({ from, to, after, signal, onProgress }: Copy): Promise<boolean> {
  const { check: checkChain } = createChainChecker(from);
  let events = 0;
  for await (const batch of from.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
    for (const stored of batch.events) {
      const fault = await checkChain(stored);
      if (fault !== undefined)
        throw new TurnlogError(
          'event_invalid',
          `The event ${stored.id} (${stored.stream} revision ${stored.revision}) is invalid: ${fault}. It and later events were not copied.`,
        );
    }
    // Sequential: another order would produce another transparency log.
    for (const run of splitIntoRuns(batch.events)) await appendRun(to, run);
    events += batch.events.length;
    onProgress({ events, position: batch.position ?? after });
    if (batch.caughtUp) return true;
  }
  return false;
}
