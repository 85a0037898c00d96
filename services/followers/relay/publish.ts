import { createLogWatch } from '../../../shared/eventlog/identity/logWatch.ts';
import { followLog } from '../../../shared/eventlog/following/followLog.ts';
import type { Checkpoint, EventBatch, Position } from '../../../shared/ports/eventStore.ts';
import { percentOf } from '../../../shared/projections/progress.ts';
import type { Publication } from '../../../shared/publicEvents/publisher.ts';
import { toPublicBatch } from '../../../shared/publicEvents/toPublicEvents.ts';
import { wasRestored, withRelayErrors } from './logErrors.ts';
import { publishMissing } from './publishMissing.ts';
import type { Relay } from './relay.ts';

/** Large, because a transaction costs some ten milliseconds regardless of its size. */
const BATCH_SIZE = 1000;
const LAG_LINE_MS = 10_000;

/** Logs the lag of the relay, at most every ten seconds, and once when it has caught up. */
function lagLogger({
  lag,
  endOfLog,
  logger,
}: Pick<Relay, 'lag' | 'endOfLog' | 'logger'>): (batch: EventBatch) => Promise<void> {
  let lastLine = performance.now();
  let isLogged = false;
  return async ({ caughtUp, position }) => {
    if (caughtUp && isLogged) logger.info({ position, lag_ms: 0 }, 'The relay has caught up');
    if (caughtUp) isLogged = false;
    if (caughtUp || performance.now() - lastLine < LAG_LINE_MS) return;
    lastLine = performance.now();
    isLogged = true;
    const end = await endOfLog.latest();
    logger.info(
      { position, lag_ms: lag.measure(end).ms, percent: Math.floor(percentOf(position, end)) },
      'The relay is behind',
    );
  };
}

/** Publishes the batches of a subscription until it fails, another relay fences it, or the signal aborts. */
async function follow(
  relay: Relay,
  publication: Publication,
  after: Checkpoint | Position | undefined,
): Promise<void> {
  const { log, lag, signal, takeOverMs } = relay;
  const beatMs = takeOverMs / 3;
  const isAtEnd = createLogWatch(log, beatMs);
  let published = typeof after === 'object' ? after.position : after;
  let beatAt = performance.now();

  /** Called only while the log responds: a relay whose log is silent leaves the work to another relay. */
  async function beat(): Promise<void> {
    await publication.beat();
    beatAt = performance.now();
  }

  await followLog({
    log: withRelayErrors(log),
    after,
    batchSize: BATCH_SIZE,
    signal,
    lag,
    onAccepted() {
      lag.resumeAt(published);
      relay.onState('relaying');
    },
    async handleBatch({ events, checkpoint }) {
      if (checkpoint && checkpoint.position !== published) {
        await publication.publish(await toPublicBatch(events), checkpoint);
        published = checkpoint.position;
        beatAt = performance.now();
      } else if (performance.now() - beatAt >= beatMs) {
        // Events that are not Turnlog's may keep the subscription busy indefinitely.
        await beat();
      }
    },
    onHandled: lagLogger(relay),
    idle: {
      afterMs: beatMs,
      async onIdle(reached) {
        if (await isAtEnd(reached)) await beat();
      },
    },
  });
}

/** Publishes until another relay takes over, a failure, or the signal aborts. */
export async function publishUntilFenced(relay: Relay, publication: Publication): Promise<void> {
  const { checkpoint } = publication;
  if (checkpoint && (await wasRestored(relay.log, checkpoint)))
    await follow(relay, publication, await publishMissing(relay, publication, checkpoint));
  else await follow(relay, publication, checkpoint ?? relay.startAfter);
}
