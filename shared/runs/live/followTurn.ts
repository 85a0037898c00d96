import type { LiveTurn, LiveTurns, TurnSubject } from './liveTurns.ts';
import type { MirroredTurns } from './mirrorTurns.ts';
import {
  partsAfter,
  type TurnPart,
  type TurnPlace,
} from '../../sessions/turns/turnOutputPosition.ts';
import { storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { sleep } from '../../lib/time/sleep.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import type { RecordedTurn, TurnEnd } from '../../sessions/turns/recordedTurn.ts';

/** What somebody hears who follows a turn. */
export type TurnNews = (TurnPart & { recorded: boolean }) | ({ type: 'ended' } & TurnEnd);

/** A look at the record; what it holds is given back once it was passed on. */
export interface Look {
  turn: RecordedTurn;
  done: () => void;
}

interface Following {
  live: Pick<LiveTurns, 'find'>;
  elsewhere: Pick<MirroredTurns, 'follow'>;
  /** Errors: those of readTurn. */
  look: () => Promise<Look>;
  /** How the run of this process ended, where there is one: its own answer, to its own client. */
  conclude?: (() => Promise<TurnEnd>) | undefined;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Aborts when this process won't wait for others any more. */
  stopping: AbortSignal;
}

/** Follows a turn that runs here. Returns the place behind what was given. */
async function* fromLive(
  live: LiveTurn,
  after: TurnPlace,
  signal: AbortSignal,
): AsyncGenerator<TurnNews, TurnPlace> {
  let place = after;
  while (live.isKept()) {
    for (let part = live.next(place); part; part = live.next(place)) {
      place = part.place;
      yield { ...part, recorded: false };
    }
    if (live.hasEnded()) return place;
    await abortable(live.changed(), signal);
  }
  return place;
}

/**
 * What a turn puts out after a place, while it runs and for ever after it, and then how it ended. It
 * comes from the run itself where that is here and keeps its text, and from the record otherwise.
 * Errors: those of `look`, `store_unavailable` where the end of the turn is long overdue, the reason
 * of `signal`, and of `stopping` where it is for another process to go on.
 */
export async function* followTurn(
  following: Following,
  subject: TurnSubject,
  after: TurnPlace,
  signal: AbortSignal,
): AsyncGenerator<TurnNews> {
  const { live, elsewhere, look, conclude, now, stopping } = following;
  const { session_id, turn } = subject;
  const either = AbortSignal.any([signal, stopping]);
  let place = after;
  for (;;) {
    const running = live.find(session_id, turn);
    // Before the look: what changes during it is no wait.
    const changed = running?.changed();
    if (running?.isKept()) {
      place = yield* fromLive(running, place, signal);
      const isWhole = running.hasEnded() && running.isKept();
      if (conclude && isWhole) return yield { type: 'ended', ...(await conclude()) };
    }
    signal.throwIfAborted();
    const { turn: record, done } = await look();
    try {
      for (const part of partsAfter(record.rounds, place)) {
        place = part.place;
        yield { ...part, recorded: true };
      }
    } finally {
      done();
    }
    if (record.end) return yield { type: 'ended', ...record.end };
    if (changed && !running?.hasEnded()) {
      await abortable(changed, signal);
      continue;
    }
    either.throwIfAborted();
    if (now() > Date.parse(record.deadline) + LIMITS.stream.overdueMs)
      throw storeUnavailableError('The end of the turn is not recorded yet.');
    const mirror = elsewhere.follow(subject, record.rounds.length + 1);
    const [from, began] = [place, performance.now()];
    try {
      place = yield* fromLive(mirror.turn, place, either);
    } finally {
      mirror.leave();
    }
    const early = LIMITS.stream.lookMs - (performance.now() - began);
    if (place === from && early > 0) await sleep(early, either);
  }
}
