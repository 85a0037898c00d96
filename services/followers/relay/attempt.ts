import type { Publication } from '../../../shared/publicEvents/publisher.ts';
import type { Relay } from './relay.ts';

/** The outcome of one attempt to publish. */
export interface Attempt {
  /** The attempt tried to take over, and so may have fenced another relay. */
  tookOver: boolean;
  /** The attempt published, or sent a heartbeat with nothing to publish. */
  madeProgress: boolean;
  published: boolean;
  /** How long the attempt is known to have led, in milliseconds: from its take-over to its last success. */
  ledMs: number;
}

/**
 * Wraps the relay for one attempt, to record its outcome. After a failed attempt the state `relaying`
 * is held back until this one has made progress.
 */
export function watchAttempt(relay: Relay, failed: boolean): { attempt: Attempt; watched: Relay } {
  const attempt: Attempt = { tookOver: false, madeProgress: false, published: false, ledMs: 0 };
  let isStateHeld = failed;
  const releaseState = (): void => {
    if (!isStateHeld) return;
    isStateHeld = false;
    relay.onState('relaying');
  };

  function watch(publication: Publication): Publication {
    const tookOverAt = performance.now();
    const noteProgress = (): void => {
      attempt.madeProgress = true;
      attempt.ledMs = performance.now() - tookOverAt;
    };
    relay.onParked(publication.parked());
    return {
      ...publication,
      async publish(events, checkpoint) {
        await publication.publish(events, checkpoint);
        noteProgress();
        attempt.published = true;
        relay.onParked(publication.parked());
      },
      async beat() {
        await publication.beat();
        noteProgress();
        releaseState();
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
        releaseState();
      },
    },
    onState(state, reason) {
      if (!isStateHeld || state !== 'relaying') relay.onState(state, reason);
    },
  };
  return { attempt, watched };
}
