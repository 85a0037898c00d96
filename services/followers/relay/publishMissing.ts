import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import {
  createCheckpoint,
  readLogIdentity,
  logIdAt,
} from '../../../shared/eventlog/identity/logIdentity.ts';
import type { Checkpoint, EventBatch, Position } from '../../../shared/ports/eventStore.ts';
import type { Publication } from '../../../shared/publicEvents/publisher.ts';
import { withRelayErrors } from './logErrors.ts';
import { followLog } from '../../../shared/eventlog/following/followLog.ts';
import type { Relay } from './relay.ts';
import { toPublicBatch } from '../../../shared/publicEvents/toPublicEvents.ts';

const BATCH_SIZE = 1000;
/**
 * Events whose ids are compared with the published messages in one scan: some ten megabytes. A longer
 * log takes several scans.
 */
const PART_SIZE = 200_000;

type MissingEventsOptions = Pick<Relay, 'log' | 'signal' | 'startAfter' | 'takeOverMs' | 'logger'>;
type StartPosition = Checkpoint | Position | undefined;

/** Handles the batches up to the end of the log; fails when the log stalls before. */
async function followToEnd(
  { log, signal, takeOverMs }: MissingEventsOptions,
  after: StartPosition,
  handleBatch: (batch: EventBatch) => Promise<void>,
): Promise<void> {
  let isAtEnd = false;
  await followLog({
    log: withRelayErrors(log),
    after,
    batchSize: BATCH_SIZE,
    signal,
    async handleBatch(batch) {
      await handleBatch(batch);
      isAtEnd = batch.caughtUp;
      return isAtEnd ? 'stop' : undefined;
    },
    idle: {
      afterMs: takeOverMs,
      async onIdle() {
        throw storeUnavailableError(`The event log has brought nothing for ${takeOverMs} ms.`);
      },
    },
  });
  if (!isAtEnd) signal.throwIfAborted();
}

/**
 * Sends heartbeats while the work makes progress, so that no other relay takes over. The first
 * heartbeat that fails aborts the work's signal, because a fenced relay must stop. Rejects with
 * the error of that heartbeat, even if the work fails before it. Settles after the last heartbeat,
 * whose transaction must not overlap with the next one.
 */
async function withHeartbeats<Result>(
  publication: Publication,
  { takeOverMs, signal }: Pick<MissingEventsOptions, 'takeOverMs' | 'signal'>,
  work: (onProgress: () => void, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const failed = new AbortController();
  let beat: Promise<void> | undefined;
  let hasProgress = true;
  const timer = setInterval(() => {
    if (!hasProgress || beat || failed.signal.aborted) return;
    hasProgress = false;
    beat = publication
      .beat()
      .catch((error: unknown) => failed.abort(error))
      .finally(() => (beat = undefined));
  }, takeOverMs / 3);
  try {
    const onProgress = (): void => void (hasProgress = true);
    return await work(onProgress, AbortSignal.any([signal, failed.signal]));
  } finally {
    clearInterval(timer);
    await beat;
    failed.signal.throwIfAborted();
  }
}

/** The position of the last event of the log that was ever published; a log is published in order. */
async function lastPublished(
  options: MissingEventsOptions,
  publication: Publication,
  onProgress: () => void,
): Promise<Position | undefined> {
  const ids = new Map<string, Position>();
  let lastPosition: Position | undefined;

  async function compare(): Promise<void> {
    await publication.visitPublished((id) => {
      onProgress();
      const position = ids.get(id);
      if (position !== undefined && position > (lastPosition ?? '')) lastPosition = position;
    }, options.signal);
    ids.clear();
  }

  await followToEnd(options, undefined, async ({ events }) => {
    onProgress();
    for (const { id, position } of await toPublicBatch(events)) ids.set(id, position);
    if (ids.size >= PART_SIZE) await compare();
  });
  await compare();
  return lastPosition;
}

/**
 * Publishes, after the log was restored, the events that were never published, in order and marked:
 * all events after the last published one. Published events that the log no longer holds stay in their
 * topics, and events that a topic no longer keeps are not published again. The checkpoint moves only at
 * the end: an interrupted call starts over, and finds what it has published. Resolves with the
 * checkpoint from which to continue.
 */
export async function publishMissing(
  options: MissingEventsOptions,
  publication: Publication,
  oldCheckpoint: Checkpoint,
): Promise<Checkpoint | undefined> {
  const { log, logger, startAfter } = options;
  const lastPosition = await withHeartbeats(publication, options, (onProgress, signal) =>
    lastPublished({ ...options, signal }, publication, onProgress),
  );
  const identity = await readLogIdentity(log);
  const restored = identity && logIdAt(identity);
  const lastEvent = lastPosition === undefined ? undefined : await log.eventAt(lastPosition);
  let lastCheckpoint = identity && lastEvent && createCheckpoint(identity, lastEvent);
  let published = 0;
  await followToEnd(options, lastCheckpoint ?? startAfter, async ({ events, checkpoint }) => {
    const missing = await toPublicBatch(events);
    const marked = missing.map((event) => ({ ...event, ...(restored && { restored }) }));
    if (marked.length > 0) await publication.publish(marked, oldCheckpoint);
    published += marked.length;
    lastCheckpoint = checkpoint ?? lastCheckpoint;
  });
  if (lastCheckpoint) await publication.publish([], lastCheckpoint);
  logger.info(
    { published, after: lastPosition, log_id: restored, position: lastCheckpoint?.position },
    'The log was restored: the events that Kafka lacked are published',
  );
  return lastCheckpoint;
}
