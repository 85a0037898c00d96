import { identityOf, logIdAt } from '../../shared/eventlog/logIdentity.ts';
import type { Checkpoint, Position, StoredEvent } from '../../shared/ports/eventStore.ts';
import type { Publication } from '../../shared/ports/publisher.ts';
import type { Relay } from './relay.ts';
import { toPublicEvents } from './toPublicEvents.ts';

const BATCH_SIZE = 1000;
/**
 * Events whose ids are compared with all that was published, in one go: some ten megabytes. A longer
 * log takes several.
 */
const PART_SIZE = 200_000;

type Mending = Pick<Relay, 'log' | 'signal' | 'startAfter' | 'takeOverMs' | 'logger'>;
/** Where a part begins: after an event, or where the operator said. */
type Start = Checkpoint | Position | undefined;

/** A part of the log: what is public in it, and where it ends. */
interface Part {
  ids: Set<string>;
  end: Checkpoint | undefined;
  isLast: boolean;
}

/** The events after a checkpoint, batch by batch, until told otherwise or the log ends. */
async function eachBatch(
  { log, signal }: Mending,
  after: Start,
  visit: (events: readonly StoredEvent[], end: Checkpoint | undefined) => Promise<boolean>,
): Promise<boolean> {
  for await (const batch of log.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
    if (!(await visit(batch.events, batch.checkpoint))) return false;
    if (batch.caughtUp) return true;
  }
  throw signal.reason;
}

async function readPart(mending: Mending, after: Start): Promise<Part> {
  const ids = new Set<string>();
  let end: Checkpoint | undefined;
  const isLast = await eachBatch(mending, after, async (events, reached) => {
    for (const { id } of toPublicEvents(events)) ids.add(id);
    end = reached;
    return ids.size < PART_SIZE;
  });
  return { ids, end, isLast };
}

/** Shows others that this relay is alive while it does something else. */
async function beating<Result>(
  publication: Publication,
  everyMs: number,
  work: () => Promise<Result>,
): Promise<Result> {
  let beat: Promise<void> = Promise.resolve();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const timer = setInterval(() => {
    beat = beat.then(publication.beat).catch(failed.reject);
  }, everyMs);
  try {
    return await Promise.race([work(), failed.promise]);
  } finally {
    clearInterval(timer);
    await beat;
  }
}

/**
 * Publishes, after the log was restored, those of its events that were never published, in order and
 * marked; what was published and is in the log no more stays where it is. The checkpoint moves with
 * the end only: what is interrupted begins anew, and finds what it has published. Resolves with the
 * checkpoint from which to go on.
 * Errors: those of the log and the publication, the signal's reason.
 */
export async function publishMissing(
  mending: Mending,
  publication: Publication,
  old: Checkpoint,
): Promise<Checkpoint | undefined> {
  const { log, signal, takeOverMs, logger } = mending;
  const identity = await identityOf(log);
  const restored = identity && logIdAt(identity);
  // What the operator left out at first is not missing.
  let start: Start = mending.startAfter;
  let end: Checkpoint | undefined;
  let published = 0;
  for (let isLast = false; !isLast;) {
    const part = await readPart(mending, start);
    await beating(publication, takeOverMs / 3, () =>
      publication.visitPublished((id) => part.ids.delete(id), signal),
    );
    const until = part.end?.position ?? '';
    await eachBatch(mending, start, async (events) => {
      const missing = toPublicEvents(events.filter(({ id }) => part.ids.has(id)));
      const marked = missing.map((event) => ({ ...event, ...(restored && { restored }) }));
      if (marked.length > 0) await publication.publish(marked, old);
      published += marked.length;
      return (events.at(-1)?.position ?? '') < until;
    });
    ({ isLast } = part);
    end = part.end ?? end;
    start = end ?? start;
  }
  if (end) await publication.publish([], end);
  logger.info(
    { published, log_id: restored, position: end?.position },
    'The log was restored: what was missing in Kafka is published',
  );
  return end;
}
