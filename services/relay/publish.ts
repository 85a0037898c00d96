import type { Publication } from '../../shared/ports/publisher.ts';
import { lagLines } from './lagLines.ts';
import { logIdOf, resumeAfter, type createSubscribeAfter } from './logIdentity.ts';
import { orIdle } from './orIdle.ts';
import type { Relay } from './relay.ts';
import { toPublicEvents } from './toPublicEvents.ts';

/** Large, because a transaction costs some ten milliseconds whatever is in it. */
const BATCH_SIZE = 1000;

interface Following extends Relay {
  /** Of this relay, for as long as it runs. */
  subscribeAfter: ReturnType<typeof createSubscribeAfter>;
}

/** Publishes what the subscription brings, until it fails, is fenced, or the signal aborts. */
async function follow(relay: Following, publication: Publication): Promise<void> {
  const { log, lag, signal, subscribeAfter, takeOverMs } = relay;
  let logId = await logIdOf(log);
  let position = resumeAfter(publication.checkpoint, logId, relay.startAfter);
  const logLag = lagLines(relay);
  const ended = new AbortController();
  const from = {
    log,
    checkpoint: publication.checkpoint,
    after: position,
    batchSize: BATCH_SIZE,
    signal: AbortSignal.any([signal, ended.signal]),
  };
  let begun = false;
  try {
    for await (const batch of orIdle(subscribeAfter(from), takeOverMs / 3)) {
      // Only now: the log has accepted the position.
      if (!begun) lag.resumed(position);
      if (!begun) relay.onState('relaying');
      begun = true;
      if (batch === 'idle') {
        await publication.beat();
        continue;
      }
      lag.reading(batch);
      logId ??= await logIdOf(log);
      if (logId !== undefined && batch.position !== undefined && batch.position !== position) {
        await publication.publish(toPublicEvents(batch.events), {
          position: batch.position,
          log_id: logId,
        });
        position = batch.position;
      }
      lag.done();
      await logLag(batch);
      if (signal.aborted) return;
    }
  } finally {
    ended.abort();
  }
  if (!signal.aborted) throw new Error('the subscription ended');
}

/**
 * Takes over from any other relay, and publishes until another one takes over, a failure, or the
 * signal. Errors: those of the log and the publisher.
 */
export async function publishUntilFenced(relay: Following): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const publication = opened.adopt(await relay.publisher.takeOver(), (open) => open.close());
  await follow(relay, publication);
}
