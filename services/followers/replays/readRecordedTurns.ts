import type { WholeTurn } from '../../../shared/replays/comparison/turnPair.ts';
import { readWholeTurns } from '../../../shared/replays/turns/wholeTurns.ts';
import type { StreamSource } from '../../../shared/eventlog/reading/reportDamage.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import type { SessionPlace } from './sessionPlace.ts';
import { createReplayBackoff, isTransientFailure } from './transientFailures.ts';

/** A recorded session up to a revision. */
interface RecordedSession {
  session_id: string;
  revision: number;
}

/**
 * Reads the turns of a recorded session; transient failures are retried. Between two turns, the
 * session gives way to others that wait for its memory, without the events read ahead.
 */
export async function* readRecordedTurns(
  source: StreamSource,
  { session_id, revision: upTo }: RecordedSession,
  place: SessionPlace,
  signal: AbortSignal,
): AsyncGenerator<WholeTurn> {
  const pauses = createReplayBackoff();
  for (let from = 0; ;) {
    let isWanted = false;
    try {
      for await (const turn of readWholeTurns(source, session_id, { from, upTo })) {
        from = turn.revision + 1;
        yield turn;
        isWanted = from <= upTo && place.isWanted();
        if (isWanted) break;
      }
      if (!isWanted) return;
    } catch (error) {
      if (!isTransientFailure(error)) throw error;
    }
    if (isWanted) await place.giveWay();
    else await sleep(pauses.next(), signal);
  }
}
