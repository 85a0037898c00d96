import { readSessionStart } from '../../../shared/replays/turns/startReplaySession.ts';
import { buildReplayedRun } from '../../../shared/replays/turns/turnToReplay.ts';
import type { WholeTurn } from '../../../shared/replays/comparison/turnPair.ts';
import type { ForkedFrom } from '../../../shared/sessions/events.ts';
import type { SessionEnd } from '../../../shared/replays/events.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { readWholeTurns } from '../../../shared/replays/turns/wholeTurns.ts';
import type { StreamSource } from '../../../shared/eventlog/reading/reportDamage.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import { BudgetSpent } from './budget.ts';
import {
  beginSessionReplay,
  forkPointOf,
  type SessionReplay,
  type SessionRun,
} from './beginSessionReplay.ts';
import { createComparisonBuffer } from './comparisonBuffer.ts';
import { CRASH, compareReplayed, ownTokens } from './compareReplayed.ts';
import { createReplayBackoff, isTransientFailure } from './transientFailures.ts';
import type { ReplayRunContext } from './replayContext.ts';
import { haveProcessesDied, ProcessesDied, replayTurnUntilEnded } from './replayTurn.ts';
import type { SessionMemory } from './sessionMemory.ts';

/** A recorded session up to a revision. */
interface RecordedSession {
  session_id: string;
  revision: number;
}

/**
 * Reads the turns of a recorded session; transient failures are retried. Between two turns, the
 * session releases its memory to waiting replays, and drops the events read ahead.
 */
export async function* readRecordedTurns(
  source: StreamSource,
  { session_id, revision: upTo }: RecordedSession,
  sessionMemory: SessionMemory,
  signal: AbortSignal,
): AsyncGenerator<WholeTurn> {
  const pauses = createReplayBackoff();
  for (let from = 0; ;) {
    let isWanted = false;
    try {
      for await (const turn of readWholeTurns(source, session_id, { from, upTo })) {
        from = turn.revision + 1;
        yield turn;
        isWanted = from <= upTo && sessionMemory.isWanted();
        if (isWanted) break;
      }
      if (!isWanted) return;
    } catch (error) {
      if (!isTransientFailure(error)) throw error;
    }
    if (isWanted) await sessionMemory.yieldToWaiters();
    else await sleep(pauses.next(), signal);
  }
}

type End = Omit<SessionEnd, 'session_id'>;

const hasAnswer = ({ end }: WholeTurn): boolean => end?.type === 'session.turn_completed.v1';

/** Codes that keep one turn from beginning, such as its model or length, but not others. */
const TURN_REFUSALS: readonly string[] = [
  'model_not_supported',
  'invalid_request',
  'payload_too_large',
];

/** Returns the code of a failure that concerns this turn only, and throws all other failures. */
async function catchRefusal(
  run: () => Promise<WholeTurn>,
): Promise<WholeTurn | { refused: string }> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof ProcessesDied) return { refused: CRASH };
    if (isTurnlogError(error) && TURN_REFUSALS.includes(error.code)) return { refused: error.code };
    throw error;
  }
}

/** Replays and compares a turn, unless that was done before. Returns true when no turn can follow. */
async function replayTurn(
  replaying: ReplayRunContext,
  run: SessionRun,
  progress: SessionReplay,
  turn: WholeTurn,
): Promise<boolean> {
  const { context } = replaying;
  const { log, session, budget, signal, retry } = run;
  const { replay, turns, numbers, comparisons, replay_session_id } = progress;
  const number = turn.started.turn;
  progress.compactions.push(...turn.compactions);
  const isCompared = number <= session.compared;
  let replayed: WholeTurn | undefined;
  let refused: string | undefined;
  if (hasAnswer(turn)) {
    const { compactions } = progress;
    const next = () => {
      const again = { turn, compactions, after_turn: turns.lastTurn() };
      return buildReplayedRun(context, progress, again);
    };
    const earlierTry = await retry(() => turns.lastTry(number));
    // An earlier process had finished any turn that later turns follow.
    const isDone =
      isCompared ||
      turns.isPassed(number) ||
      (earlierTry && (hasAnswer(earlierTry) || isStop(earlierTry)));
    const turnToRun = {
      actor: log.actor,
      session_id: replay_session_id,
      turns,
      recorded: number,
      earlierTry,
      budget,
    };
    replayed = earlierTry;
    if (!isDone) {
      const outcome = await catchRefusal(() =>
        replayTurnUntilEnded(replaying, turnToRun, next, signal),
      );
      if ('refused' in outcome) refused = outcome.refused;
      else replayed = outcome;
    }
    if (replayed && hasAnswer(replayed)) numbers.add(number, replayed.started.turn);
    // The summaries before a turn that did not begin are made before the next turn, unless processes died.
    const isGivenUp = (): Promise<boolean> => retry(() => haveProcessesDied(replaying, turnToRun));
    if (replayed || refused === CRASH || (isCompared && (await isGivenUp())))
      progress.compactions = [];
  }
  if (!isCompared) {
    const pair = {
      replay,
      session_id: session.session_id,
      recorded: turn,
      replayed: replayed && {
        ...replayed,
        session_id: replay_session_id,
        other_tokens: turns.tokens().total - ownTokens(replayed),
      },
      refused,
    };
    const comparison = await retry(() => compareReplayed(replaying, run, progress, pair));
    comparisons.add(comparison);
    // For a failed turn, only the recorded comparison keeps it from being run again.
    const hasFailed = comparison.outcome === 'failed';
    if (hasFailed || comparisons.isFull()) await comparisons.flush();
  }
  return replayed !== undefined && isStop(replayed);
}

const isStop = ({ end }: WholeTurn): boolean =>
  end?.type === 'session.turn_failed.v1' && end.data.code === 'tool_not_recorded';

/**
 * Replays the turns of a session in order, from where its replay stopped, and records how it ended.
 * Returns undefined when the budget was exhausted before the end.
 */
export async function replaySession(
  replaying: ReplayRunContext,
  run: SessionRun,
): Promise<End | undefined> {
  const { context } = replaying;
  const { replay, session, sessionMemory, signal, retry } = run;
  const { session_id } = session;
  const { from_turn = 1, up_to_turn = Infinity } = replay.settings;
  const recorded = await retry(() => readSessionStart(context, replay.account_id, session_id));
  let progress: SessionReplay | undefined;
  let forkPoint: ForkedFrom | undefined;
  let end: End = { status: 'completed' };
  try {
    for await (const turn of readRecordedTurns(context, session, sessionMemory, signal)) {
      if (turn.started.turn > up_to_turn) break;
      if (turn.started.turn < from_turn) {
        forkPoint = forkPointOf(session_id, turn);
        continue;
      }
      progress ??= await beginSessionReplay(replaying, run, recorded, forkPoint);
      if (!(await replayTurn(replaying, run, progress, turn))) continue;
      end = { status: 'stopped', code: 'tool_not_recorded' };
      break;
    }
  } catch (error) {
    // Earlier comparisons are kept, whatever prevents the next turn from being replayed.
    if (!signal.aborted) await progress?.comparisons.flush();
    if (error instanceof BudgetSpent) return undefined;
    throw error;
  } finally {
    await progress?.comparisons.close();
  }
  const comparisons = progress?.comparisons ?? createComparisonBuffer(run.log, session_id, retry);
  await comparisons.flush(end);
  return end;
}
