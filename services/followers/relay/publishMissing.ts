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
import { toPublicEvents } from '../../../shared/publicEvents/toPublicEvents.ts';

const BATCH_SIZE = 1000;
/**
 * Events whose ids are compared with all that was published, in one go: some ten megabytes. A longer
 * log takes several.
 */
const PART_SIZE = 200_000;

type Mending = Pick<Relay, 'log' | 'signal' | 'startAfter' | 'takeOverMs' | 'logger'>;
type Start = Checkpoint | Position | undefined;

/** Handles the batches up to the end of the log; fails when the log falls silent before. */
async function followToEnd(
  { log, signal, takeOverMs }: Mending,
  after: Start,
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

/** Shows others, while something else is done, that this relay is alive: as long as it gets on. */
async function beating<Result>(
  publication: Publication,
  everyMs: number,
  work: (getsOn: () => void) => Promise<Result>,
): Promise<Result> {
  let beat: Promise<void> = Promise.resolve();
  let failure: { error: unknown } | undefined;
  let gotOn = true;
  const timer = setInterval(() => {
    if (!gotOn) return;
    gotOn = false;
    beat = beat.then(publication.beat).catch((error: unknown) => void (failure ??= { error }));
  }, everyMs);
  const result = await work(() => void (gotOn = true)).finally(() => clearInterval(timer));
  await beat;
  if (failure) throw failure.error;
  return result;
}

/** The last event of the log that was ever published; a log is published in its order. */
async function lastPublished(
  mending: Mending,
  publication: Publication,
  getsOn: () => void,
): Promise<Position | undefined> {
  const ids = new Map<string, Position>();
  let last: Position | undefined;

  async function compare(): Promise<void> {
    await publication.visitPublished((id) => {
      getsOn();
      const position = ids.get(id);
      if (position !== undefined && position > (last ?? '')) last = position;
    }, mending.signal);
    ids.clear();
  }

  await followToEnd(mending, undefined, async ({ events }) => {
    getsOn();
    for (const { id, position } of toPublicEvents(events)) ids.set(id, position);
    if (ids.size >= PART_SIZE) await compare();
  });
  await compare();
  return last;
}

/**
 * Publishes, after the log was restored, those of its events that were never published, in order and
 * marked: all that come after the last one that was. What was published and is in the log no more
 * stays where it is, and what a topic no longer keeps is not published again. The checkpoint moves
 * with the end only: what is interrupted begins anew, and finds what it has published. Resolves with
 * the checkpoint from which to go on.
 * Errors: those of the log and the publication, the signal's reason.
 */
export async function publishMissing(
  mending: Mending,
  publication: Publication,
  old: Checkpoint,
): Promise<Checkpoint | undefined> {
  const { log, takeOverMs, logger, startAfter } = mending;
  const last = await beating(publication, takeOverMs / 3, (getsOn) =>
    lastPublished(mending, publication, getsOn),
  );
  const identity = await readLogIdentity(log);
  const restored = identity && logIdAt(identity);
  const found = last === undefined ? undefined : await log.eventAt(last);
  let reached = identity && found && createCheckpoint(identity, found);
  let published = 0;
  await followToEnd(mending, reached ?? startAfter, async ({ events, checkpoint }) => {
    const missing = toPublicEvents(events);
    const marked = missing.map((event) => ({ ...event, ...(restored && { restored }) }));
    if (marked.length > 0) await publication.publish(marked, old);
    published += marked.length;
    reached = checkpoint ?? reached;
  });
  if (reached) await publication.publish([], reached);
  logger.info(
    { published, after: last, log_id: restored, position: reached?.position },
    'The log was restored: what was missing in Kafka is published',
  );
  return reached;
}
