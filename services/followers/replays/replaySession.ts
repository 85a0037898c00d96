import { readSessionStart } from '../../../shared/replays/turns/startReplaySession.ts';
import { buildReplayedRun } from '../../../shared/replays/turns/turnToReplay.ts';
import type { WholeTurn } from '../../../shared/replays/comparison/turnPair.ts';
import { readWholeTurns } from '../../../shared/replays/turns/wholeTurns.ts';
import type { SessionEnd } from '../../../shared/replays/events.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import { BudgetSpent } from './budget.ts';
import { beginSessionReplay, type SessionReplay, type SessionRun } from './beginSessionReplay.ts';
import { createComparisonBuffer } from './comparisonBuffer.ts';
import { createReplayBackoff, isTransientFailure, retryTransient } from './transientFailures.ts';
import type { ReplayRunContext } from './replayContext.ts';
import { replayTurnUntilEnded } from './replayTurn.ts';

type End = Omit<SessionEnd, 'session_id'>;

const hasAnswer = ({ end }: WholeTurn): boolean => end?.type === 'session.turn_completed.v1';

/** The turns of a recorded session, which passing trouble does not end. Errors: those of wholeTurns. */
async function* turnsUpTo(
  { context }: ReplayRunContext,
  sessionId: string,
  upTo: number,
  signal: AbortSignal,
): AsyncGenerator<WholeTurn> {
  const pauses = createReplayBackoff();
  for (let from = 0; ;) {
    try {
      for await (const turn of readWholeTurns(context, sessionId, { from, upTo })) {
        from = turn.revision + 1;
        yield turn;
      }
      return;
    } catch (error) {
      if (!isTransientFailure(error)) throw error;
    }
    await sleep(pauses.next(), signal);
  }
}

const ownTokens = ({ end }: WholeTurn): number =>
  (end && 'tokens' in end.data && end.data.tokens?.total) || 0;

/** Codes of what keeps one turn from beginning, and need not keep others: its model, its length. */
const REFUSALS: readonly string[] = ['model_not_supported', 'invalid_request', 'payload_too_large'];

/** Errors: those of runTurn that keep the whole session from being replayed. */
async function unlessRefused(
  run: () => Promise<WholeTurn>,
): Promise<WholeTurn | { refused: string }> {
  try {
    return await run();
  } catch (error) {
    if (isTurnlogError(error) && REFUSALS.includes(error.code)) return { refused: error.code };
    throw error;
  }
}

/** Replays a turn, unless it was before, and compares it. True where nothing follows it. */
async function replayTurn(
  replaying: ReplayRunContext,
  { log, session, budget, signal }: SessionRun,
  progress: SessionReplay,
  turn: WholeTurn,
): Promise<boolean> {
  const { context, compareTurn } = replaying;
  const { replay, turns, numbers, comparisons, replay_session_id } = progress;
  const number = turn.started.turn;
  const patience = { signal, logger: context.logger };
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
    const made = await retryTransient(() => turns.lastTry(number), patience);
    // Whoever ran the replay before was done with a turn that later ones stand behind.
    const isDone =
      isCompared || turns.isPassed(number) || (made && (hasAnswer(made) || isStop(made)));
    const toRun = { actor: log.actor, turns, recorded: number, made, budget };
    replayed = made;
    if (!isDone) {
      const ran = await unlessRefused(() => replayTurnUntilEnded(replaying, toRun, next, signal));
      if ('refused' in ran) refused = ran.refused;
      else replayed = ran;
    }
    if (replayed && hasAnswer(replayed)) numbers.add(number, replayed.started.turn);
    // Those before a turn that did not begin are made before the next one.
    if (replayed) progress.compactions = [];
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
    const comparison = await retryTransient(() => compareTurn(pair, { budget, signal }), patience);
    comparisons.add(comparison);
    // Of a turn that has failed only this says that nobody is to run it again.
    const hasFailed = comparison.outcome === 'failed';
    if (hasFailed || comparisons.isFull()) await comparisons.flush();
  }
  return replayed !== undefined && isStop(replayed);
}

const isStop = ({ end }: WholeTurn): boolean =>
  end?.type === 'session.turn_failed.v1' && end.data.code === 'tool_not_recorded';

/**
 * Replays the turns of a session one after the other, from where its replay is. Undefined where the
 * tokens were used before its end; else it is recorded how it ended.
 * Errors: what keeps the session from being replayed, Rejection of the replay's stream, the signal's
 * reason.
 */
export async function replaySession(
  replaying: ReplayRunContext,
  run: SessionRun,
): Promise<End | undefined> {
  const { context } = replaying;
  const { replay, session, signal } = run;
  const { session_id, revision: upTo } = session;
  const { from_turn = 1, up_to_turn = Infinity } = replay.settings;
  const patience = { signal, logger: context.logger };
  const recorded = await retryTransient(
    () => readSessionStart(context, replay.account_id, session_id),
    patience,
  );
  let progress: SessionReplay | undefined;
  let before: WholeTurn | undefined;
  let end: End = { status: 'completed' };
  try {
    for await (const turn of turnsUpTo(replaying, session_id, upTo, signal)) {
      if (turn.started.turn > up_to_turn) break;
      if (turn.started.turn < from_turn) {
        before = turn;
        continue;
      }
      progress ??= await beginSessionReplay(replaying, run, recorded, before);
      if (!(await replayTurn(replaying, run, progress, turn))) continue;
      end = { status: 'stopped', code: 'tool_not_recorded' };
      break;
    }
  } catch (error) {
    // What was compared before stays, whatever keeps the next turn from being replayed.
    if (!signal.aborted) await progress?.comparisons.flush();
    if (error instanceof BudgetSpent) return undefined;
    throw error;
  } finally {
    await progress?.comparisons.close();
  }
  const comparisons =
    progress?.comparisons ?? createComparisonBuffer(run.log, { session_id, ...patience });
  await comparisons.flush(end);
  return end;
}
