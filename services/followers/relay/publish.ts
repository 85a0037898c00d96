import type { Checkpoint, Position } from '../../../shared/ports/eventStore.ts';
import type { Publication } from '../../../shared/publicEvents/publisher.ts';
import { lagLines } from './lagLines.ts';
import { subscribeAfter, wasRestored } from './logIdentity.ts';
import { createLogWatch } from '../../../shared/eventlog/identity/logWatch.ts';
import { withIdleTicks } from '../../../shared/lib/time/withIdleTicks.ts';
import { publishMissing } from './publishMissing.ts';
import type { Relay } from './relay.ts';
import { toPublicEvents } from '../../../shared/publicEvents/toPublicEvents.ts';

/** Large, because a transaction costs some ten milliseconds whatever is in it. */
const BATCH_SIZE = 1000;

/** Publishes what the subscription brings, until it fails, is fenced, or the signal aborts. */
async function follow(
  relay: Relay,
  publication: Publication,
  after: Checkpoint | Position | undefined,
): Promise<void> {
  const { log, lag, signal, takeOverMs } = relay;
  const logLag = lagLines(relay);
  const ended = new AbortController();
  const from = {
    log,
    after,
    batchSize: BATCH_SIZE,
    signal: AbortSignal.any([signal, ended.signal]),
  };
  const beatMs = takeOverMs / 3;
  const hasNothing = createLogWatch(log, beatMs);
  let reached = typeof after === 'object' ? after.position : after;
  let read = reached;
  let begun = false;
  let shownAt = performance.now();

  /** A relay whose log has fallen silent shows nothing: one whose log has not may take over. */
  async function showLife(): Promise<void> {
    await publication.beat();
    shownAt = performance.now();
  }

  try {
    for await (const batch of withIdleTicks(subscribeAfter(from), beatMs)) {
      if (batch === 'idle') {
        if (await hasNothing(read)) await showLife();
        continue;
      }
      // Only now: the log has accepted the checkpoint.
      if (!begun) lag.resumed(reached);
      if (!begun) relay.onState('relaying');
      begun = true;
      lag.reading(batch);
      const { checkpoint } = batch;
      if (checkpoint && checkpoint.position !== reached) {
        await publication.publish(toPublicEvents(batch.events), checkpoint);
        reached = checkpoint.position;
        shownAt = performance.now();
      } else if (performance.now() - shownAt >= beatMs) {
        // The events of others may keep the subscription busy for ever.
        await showLife();
      }
      read = batch.position;
      lag.done();
      await logLag(batch);
      if (signal.aborted) return;
    }
  } finally {
    ended.abort();
  }
  if (!signal.aborted) throw new Error('the subscription ended');
}

/** Publishes until another relay takes over, a failure, or the signal. */
export async function publishUntilFenced(relay: Relay, publication: Publication): Promise<void> {
  const { checkpoint } = publication;
  if (checkpoint && (await wasRestored(relay.log, checkpoint)))
    await follow(relay, publication, await publishMissing(relay, publication, checkpoint));
  else await follow(relay, publication, checkpoint ?? relay.startAfter);
}
