import type { Budget, RunningReplay } from '../../../shared/replays/comparison/turnPair.ts';
import type { ReplayStream } from './replayStream.ts';
import { listJudgeChecks } from '../../../shared/replays/comparison/comparePair.ts';
import { judgeSessionId } from '../../../shared/replays/comparison/judgeSession.ts';
import { readReplayedTurns } from '../../../shared/replays/turns/replayedTurns.ts';
import type { ReplayedSession } from '../../../shared/replays/sessionStates.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { StreamSource } from '../../../shared/eventlog/reading/reportDamage.ts';
import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { Ids } from '../../../shared/ports/clock.ts';
import { isTransientFailure } from './transientFailures.ts';

/** The token budget of the replay is exhausted, so nothing more is begun. */
export class BudgetSpent extends Error {}

/** Tokens used in one session of the replay for one recorded turn. */
type TokenUse = Parameters<Budget['took']>[0];

/**
 * The budget of a replay. It counts the tokens recorded in the replay's stream, and those of turns that
 * are not compared yet.
 */
export function createBudget(log: Pick<ReplayStream, 'state'>): Budget {
  const uncompared = new Map<string, TokenUse>();

  /** Removes what the stream of the replay has recorded meanwhile. */
  function listUncompared(): TokenUse[] {
    const state = log.state();
    for (const [key, { session_id, turn }] of uncompared) {
      const session = 'sessions' in state ? state.sessions.get(session_id) : undefined;
      if (!session || session.ended || turn <= session.compared) uncompared.delete(key);
    }
    return [...uncompared.values()];
  }
  const sum = (all: readonly TokenUse[]): number =>
    all.reduce((total, { tokens }) => total + tokens, 0);

  return {
    took(use) {
      uncompared.set(`${use.in}/${use.turn}`, use);
      listUncompared();
    },
    uncompared: (sessionId, of) =>
      sum(
        listUncompared().filter(
          ({ session_id, turn }) => session_id === sessionId && turn === (of ?? turn),
        ),
      ),
    isSpent() {
      const open = listUncompared();
      const state = log.state();
      return 'settings' in state && state.tokens + sum(open) >= state.settings.budget_tokens;
    },
  };
}

type Context = StreamSource & { ids: Pick<Ids, 'typeId'>; logger: Pick<Logger, 'debug'> };

/**
 * Counts the tokens that an earlier process used for turns that are not compared. A session that can't
 * be read does not count: its replay ends for that reason.
 */
export async function countUncompared(
  context: Context,
  { replay, budget }: { replay: RunningReplay; budget: Budget },
  { session_id, replay_session_id, compared }: ReplayedSession,
): Promise<void> {
  if (replay_session_id === undefined) return;
  const judges: { turn: number; in: string }[] = [];
  const read = async (at: string, onTry: Parameters<typeof readReplayedTurns>[1]['onTry']) => {
    try {
      await readReplayedTurns(context, { sessionId: at, onTry }).lastTry(Infinity);
    } catch (error) {
      if (isTransientFailure(error) || !isTurnlogError(error)) throw error;
      context.logger.debug(
        errorSummary(error),
        'the tokens used by a session of a replay could not be read',
      );
    }
  };
  await read(replay_session_id, (replayed, turn, tokens) => {
    if (turn <= compared) return;
    budget.took({ session_id, turn, in: replay_session_id, tokens });
    if (replayed.end?.type !== 'session.turn_completed.v1') return;
    const of = { session_id: replay_session_id, ...replayed };
    for (const check of listJudgeChecks({ replay, session_id, turn }))
      judges.push({ turn, in: judgeSessionId(context.ids, of, check) });
  });
  for (const judge of judges)
    await read(judge.in, (_turn, _recorded, tokens) =>
      budget.took({ session_id, ...judge, tokens }),
    );
}
