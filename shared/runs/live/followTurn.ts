import { addAbortListener } from 'node:events';
import type { StartedRun } from '../startOnce.ts';
import type { LiveTurn, LiveTurns, AccountTurn } from './liveTurns.ts';
import type { MirroredTurns } from './mirrorTurns.ts';
import {
  partsAfter,
  type TurnPart,
  type TurnOutputPosition,
} from '../../sessions/turns/turnOutputPosition.ts';
import { isLogUnavailable, storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { waitToBegin } from '../../lib/concurrency/pacedSteps.ts';
import { sleep } from '../../lib/time/sleep.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import type { RecordedTurn, RecordedTurnOutcome } from '../../sessions/turns/recordedTurn.ts';

/**
 * An update that followers of a turn receive: `recorded` from its record, whose memory is reserved until the
 * next update. Followers of a live turn share its parts.
 */
export type TurnUpdate = (TurnPart | ({ type: 'ended' } & RecordedTurnOutcome)) & {
  recorded?: true;
};

/** The recorded turn. */
export interface TurnSnapshot {
  turn: RecordedTurn;
  /** Releases the memory of the snapshot. */
  done: () => void;
}

interface FollowOptions {
  liveTurns: Pick<LiveTurns, 'find'>;
  mirroredTurns: Pick<MirroredTurns, 'follow'>;
  readSnapshot: () => Promise<TurnSnapshot>;
  /**
   * Resolves with the end of a run in this process, for the client that started it; with undefined
   * where it is no longer in memory.
   */
  awaitOwnOutcome?: (() => Promise<RecordedTurnOutcome | undefined>) | undefined;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Aborts when this process no longer waits for other processes. */
  stopping: AbortSignal;
}

/**
 * Creates the `awaitOwnOutcome` of a client that may read its stream slowly. A result stays in memory no longer
 * than the text of the turn. A retry of the request reads the result like any other follower.
 */
export function createOwnOutcome(
  started: Pick<StartedRun, 'result' | 'resultWithin'>,
): () => Promise<RecordedTurnOutcome | undefined> {
  const isRetry = started.resultWithin !== undefined;
  let outcome = started.result.then(
    (result): RecordedTurnOutcome | undefined => {
      if (isRetry) return undefined;
      setTimeout(forget, LIMITS.stream.lingerMs).unref();
      return { result };
    },
    (failed: unknown) => ({ failed }),
  );
  function forget(): void {
    outcome = Promise.resolve(undefined);
  }
  return () => outcome;
}

/** Follows a turn of this process. Returns the position after the yielded parts. */
async function* followLiveTurn(
  live: LiveTurn,
  after: TurnOutputPosition,
  signal: AbortSignal,
): AsyncGenerator<TurnUpdate, TurnOutputPosition> {
  let position = after;
  let onAbort: (() => void) | undefined;
  // One listener for all waits: thousands of followers wait again after each part.
  using _listening = addAbortListener(signal, () => onAbort?.());
  while (live.isBuffered()) {
    for (let part = live.nextPart(position); part; part = live.nextPart(position)) {
      position = part.position;
      yield part;
    }
    if (live.hasEnded()) return position;
    signal.throwIfAborted();
    await new Promise<void>((resolve) => {
      onAbort = resolve;
      live.onChange(resolve);
    });
  }
  return position;
}

/** A turn that was open when its record was read. */
interface OpenRecord {
  /** The position after its recorded output. */
  position: TurnOutputPosition;
  rounds: number;
  deadline: string;
}

/**
 * Yields the recorded output after a position, and the end of a turn that has ended. The record is in
 * memory until the last of it was passed on.
 */
async function* followRecord(
  readSnapshot: FollowOptions['readSnapshot'],
  after: TurnOutputPosition,
): AsyncGenerator<TurnUpdate, OpenRecord | undefined> {
  const { turn, done } = await readSnapshot();
  let position = after;
  try {
    for (const part of partsAfter(turn.rounds, position)) {
      position = part.position;
      yield { ...part, recorded: true };
    }
    if (!turn.outcome) return { position, rounds: turn.rounds.length, deadline: turn.deadline };
    yield { type: 'ended', ...turn.outcome, recorded: true };
    return undefined;
  } finally {
    done();
  }
}

/**
 * Yields the recorded output of a run that lost the store, after a position: tool calls whose append seemed to fail.
 * The end of the turn may not be recorded, and the record may be unavailable.
 */
async function* recordedRest(
  readSnapshot: FollowOptions['readSnapshot'],
  after: TurnOutputPosition,
): AsyncGenerator<TurnUpdate> {
  try {
    for await (const update of followRecord(readSnapshot, after))
      if (update.type !== 'ended') yield update;
  } catch {
    // The client learns from the error that the run failed.
  }
}

/**
 * Yields the output of a turn after a position, and then its end, while the turn runs or at any
 * later time. Reads it from the run if that is in this process and buffered, and otherwise from the
 * record. Throws the errors of `readSnapshot`, `store_unavailable` for a turn whose end is long
 * overdue, the reason of `signal`, and the reason of `stopping` when another process must continue.
 */
export async function* followTurn(
  options: FollowOptions,
  subject: AccountTurn,
  after: TurnOutputPosition,
  signal: AbortSignal,
): AsyncGenerator<TurnUpdate> {
  const { liveTurns, mirroredTurns, readSnapshot, awaitOwnOutcome, now, stopping } = options;
  const { session_id, turn } = subject;
  const either = AbortSignal.any([signal, stopping]);
  const readOutcome = async (): Promise<RecordedTurnOutcome | undefined> => {
    const { turn: recorded, done } = await readSnapshot();
    done();
    // A tool call whose append seemed to fail is in the record only.
    const isComplete = partsAfter(recorded.rounds, position).next().done === true;
    return isComplete ? recorded.outcome : undefined;
  };
  let position = after;
  for (;;) {
    const running = liveTurns.find(session_id, turn);
    // Created before the read, so that changes during the read are not missed.
    const changed = running?.nextChange();
    if (running?.isBuffered()) {
      position = yield* followLiveTurn(running, position, signal);
      const isWhole = running.hasEnded() && running.isBuffered();
      if (isWhole && awaitOwnOutcome) {
        const own = await awaitOwnOutcome();
        if (own && 'failed' in own && isLogUnavailable(own.failed))
          yield* recordedRest(readSnapshot, position);
        if (own) return yield { type: 'ended', ...own };
      }
      const outcome = isWhole ? await running.shareOutcome(readOutcome) : undefined;
      // Otherwise, all followers would receive the end at once.
      await waitToBegin(subject.account_id);
      if (outcome) return yield { type: 'ended', ...outcome };
    }
    signal.throwIfAborted();
    const open = yield* followRecord(readSnapshot, position);
    if (!open) return undefined;
    ({ position } = open);
    if (changed && !running?.hasEnded()) {
      await abortable(changed, signal);
      continue;
    }
    either.throwIfAborted();
    if (now() > Date.parse(open.deadline) + LIMITS.stream.overdueMs)
      throw storeUnavailableError('The end of the turn is not recorded yet.');
    const mirror = mirroredTurns.follow(subject, open.rounds + 1);
    const [from, startedAt] = [position, performance.now()];
    try {
      position = yield* followLiveTurn(mirror.turn, position, either);
    } finally {
      mirror.leave();
    }
    const remainingMs = LIMITS.stream.lookMs - (performance.now() - startedAt);
    if (position === from && remainingMs > 0) await sleep(remainingMs, either);
  }
}
