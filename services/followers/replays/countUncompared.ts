import { listJudgeChecks } from '../../../shared/replays/comparison/comparePair.ts';
import { judgeSessionId } from '../../../shared/replays/comparison/judgeSession.ts';
import { readReplayedTurns } from '../../../shared/replays/turns/replayedTurns.ts';
import type { Budget, RunningReplay } from '../../../shared/replays/comparison/turnPair.ts';
import type { ReplayedSession } from '../../../shared/replays/sessionStates.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { StreamSource } from '../../../shared/eventlog/reading/reportDamage.ts';
import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { Ids } from '../../../shared/ports/clock.ts';
import { isTransientFailure } from './transientFailures.ts';

type Context = StreamSource & { ids: Pick<Ids, 'typeId'>; logger: Pick<Logger, 'debug'> };

/**
 * Counts what was taken for turns that are not compared, by a process that ran the replay before. A
 * session that can't be read counts for nothing: its replay ends for that reason.
 * Errors: what passes (`isPassing`), and what nobody expects.
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
      context.logger.debug(errorSummary(error), 'what a session of a replay took is not known');
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
