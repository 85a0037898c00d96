import type { Publication } from '../../../shared/publicEvents/publisher.ts';
import type { Relay } from './relay.ts';

/** What became of one attempt to publish. */
export interface Attempt {
  /** It tried to take over, and so may have fenced another relay. */
  tookOver: boolean;
  /** It published, or was alive with nothing to publish. */
  madeProgress: boolean;
}

/**
 * The relay for one attempt, which tells what becomes of it, and is not shown as `relaying` after
 * `failed` before it has dealt with something: in between attempts nothing is well.
 */
export function watchAttempt(relay: Relay, failed: boolean): { attempt: Attempt; watched: Relay } {
  const attempt: Attempt = { tookOver: false, madeProgress: false };
  let hold = failed;
  const wasDone = (): void => {
    if (!hold) return;
    hold = false;
    relay.onState('relaying');
  };

  function watch(publication: Publication): Publication {
    relay.onParked(publication.parked());
    return {
      ...publication,
      async publish(events, checkpoint) {
        await publication.publish(events, checkpoint);
        attempt.madeProgress = true;
        relay.onParked(publication.parked());
      },
      async beat() {
        await publication.beat();
        attempt.madeProgress = true;
        wasDone();
      },
    };
  }

  const watched: Relay = {
    ...relay,
    publisher: {
      ...relay.publisher,
      async takeOver() {
        attempt.tookOver = true;
        return watch(await relay.publisher.takeOver());
      },
    },
    lag: {
      ...relay.lag,
      finishBatch() {
        relay.lag.finishBatch();
        wasDone();
      },
    },
    onState(state, reason) {
      if (!hold || state !== 'relaying') relay.onState(state, reason);
    },
  };
  return { attempt, watched };
}
