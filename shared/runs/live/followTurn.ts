import type { LiveTurn, LiveTurns, AccountTurn } from './liveTurns.ts';
import type { MirroredTurns } from './mirrorTurns.ts';
import {
  partsAfter,
  type TurnPart,
  type TurnOutputPosition,
} from '../../sessions/turns/turnOutputPosition.ts';
import { storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { sleep } from '../../lib/time/sleep.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import type { RecordedTurn, RecordedTurnOutcome } from '../../sessions/turns/recordedTurn.ts';

/** What somebody hears who follows a turn. */
export type TurnUpdate =
  (TurnPart & { recorded: boolean }) | ({ type: 'ended' } & RecordedTurnOutcome);

/** A look at the record; what it holds is given back once it was passed on. */
export interface TurnSnapshot {
  turn: RecordedTurn;
  done: () => void;
}

interface FollowOptions {
  liveTurns: Pick<LiveTurns, 'find'>;
  mirroredTurns: Pick<MirroredTurns, 'follow'>;
  readSnapshot: () => Promise<TurnSnapshot>;
  /** How the run of this process ended, where there is one: its own answer, to its own client. */
  awaitOwnOutcome?: (() => Promise<RecordedTurnOutcome>) | undefined;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Aborts when this process won't wait for others any more. */
  stopping: AbortSignal;
}

/** Follows a turn that runs here. Returns the place behind what was given. */
async function* followLiveTurn(
  live: LiveTurn,
  after: TurnOutputPosition,
  signal: AbortSignal,
): AsyncGenerator<TurnUpdate, TurnOutputPosition> {
  let place = after;
  while (live.isBuffered()) {
    for (let part = live.nextPart(place); part; part = live.nextPart(place)) {
      place = part.position;
      yield { ...part, recorded: false };
    }
    if (live.hasEnded()) return place;
    await abortable(live.nextChange(), signal);
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
  following: FollowOptions,
  subject: AccountTurn,
  after: TurnOutputPosition,
  signal: AbortSignal,
): AsyncGenerator<TurnUpdate> {
  const { liveTurns, mirroredTurns, readSnapshot, awaitOwnOutcome, now, stopping } = following;
  const { session_id, turn } = subject;
  const either = AbortSignal.any([signal, stopping]);
  let place = after;
  for (;;) {
    const running = liveTurns.find(session_id, turn);
    // Before the look: what changes during it is no wait.
    const changed = running?.nextChange();
    if (running?.isBuffered()) {
      place = yield* followLiveTurn(running, place, signal);
      const isWhole = running.hasEnded() && running.isBuffered();
      if (awaitOwnOutcome && isWhole) return yield { type: 'ended', ...(await awaitOwnOutcome()) };
    }
    signal.throwIfAborted();
    const { turn: record, done } = await readSnapshot();
    try {
      for (const part of partsAfter(record.rounds, place)) {
        place = part.position;
        yield { ...part, recorded: true };
      }
    } finally {
      done();
    }
    if (record.outcome) return yield { type: 'ended', ...record.outcome };
    if (changed && !running?.hasEnded()) {
      await abortable(changed, signal);
      continue;
    }
    either.throwIfAborted();
    if (now() > Date.parse(record.deadline) + LIMITS.stream.overdueMs)
      throw storeUnavailableError('The end of the turn is not recorded yet.');
    const mirror = mirroredTurns.follow(subject, record.rounds.length + 1);
    const [from, began] = [place, performance.now()];
    try {
      place = yield* followLiveTurn(mirror.turn, place, either);
    } finally {
      mirror.leave();
    }
    const early = LIMITS.stream.lookMs - (performance.now() - began);
    if (place === from && early > 0) await sleep(early, either);
  }
}
