import type { AskJudge, JudgeAnswer } from '../../../shared/replays/comparison/comparePair.ts';
import { findFailureCode } from '../../../shared/replays/comparison/compareTurn.ts';
import { judgeSessionId } from '../../../shared/replays/comparison/judgeSession.ts';
import {
  readSessionStart,
  beginReplaySession,
} from '../../../shared/replays/turns/startReplaySession.ts';
import { readReplayedTurns } from '../../../shared/replays/turns/replayedTurns.ts';
import type { WholeTurn } from '../../../shared/replays/comparison/turnPair.ts';
import type { ReplayedTurn } from '../../../shared/runs/runRequest.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { AgentRow } from '../../../shared/readModels/tables.ts';
import { BudgetSpent } from './budget.ts';
import { isTransientFailure } from './transientFailures.ts';
import type { ReplayRunContext } from './replayContext.ts';
import { ProcessesDied, replayTurnUntilEnded } from './replayTurn.ts';

/** An agent that is not stored, with just what a run needs to ask a model. */
const judgeAgent = (
  agent: Pick<AgentRow, 'agent_id' | 'account_id' | 'instruction' | 'model'>,
) => ({
  ...agent,
  name: '',
  tool: null,
  component: '',
  compaction: false,
  parameters: null,
  created_at: '',
  updated_at: '',
  deleted: false,
  erased: false,
  position: '',
});

/** The result without a judgement, because the budget was exhausted. */
const BUDGET_EXHAUSTED = { code: 'budget_exhausted' } as const;

/** The answer of a judge, or the code of its failure. */
function judgeResult({ end }: WholeTurn): Pick<JudgeAnswer, 'output' | 'code'> {
  if (end?.type === 'session.turn_completed.v1') return { output: end.data.output };
  return { code: findFailureCode(end) ?? 'turn_interrupted' };
}

/** Asks models to judge replayed turns, each in a separate session marked as a judge's. */
export const createAskJudge =
  (replaying: Omit<ReplayRunContext, 'compareTurn'>): AskJudge =>
  async ({ pair, check, model, instruction, input }, { budget, signal }) => {
    const { context } = replaying;
    const { replay, session_id, recorded } = pair;
    const replayed = pair.replayed!;
    const { replay_id, account_id } = replay;
    const { turn, agent_revision: revision } = recorded.started;
    const actor = { account_id, key_id: 'system', request_id: replay_id };
    const sessionId = judgeSessionId(context.ids, replayed, check);
    const turns = readReplayedTurns(context, {
      sessionId,
      onTry: (_, of, tokens) => budget.took({ session_id, turn: of, in: sessionId, tokens }),
    });
    const judged = (result: Pick<JudgeAnswer, 'output' | 'code'>): JudgeAnswer => ({
      session_id: sessionId,
      ...result,
      ...(turns.tokens().total > 0 && { tokens: turns.tokens() }),
    });
    const failed = (error: unknown): JudgeAnswer => {
      signal.throwIfAborted();
      if (error instanceof BudgetSpent) return judged(BUDGET_EXHAUSTED);
      if (error instanceof ProcessesDied) return judged({ code: 'crash' });
      if (isTransientFailure(error) || !isTurnlogError(error)) throw error;
      return judged({ code: error.code });
    };

    let earlierTry: WholeTurn | undefined;
    try {
      earlierTry = await turns.lastTry(turn);
    } catch (error) {
      return failed(error);
    }
    // An earlier process that ran the replay may have called the judge.
    if (earlierTry?.end?.type === 'session.turn_completed.v1')
      return judged(judgeResult(earlierTry));
    if (budget.isSpent()) return earlierTry ? judged(BUDGET_EXHAUSTED) : BUDGET_EXHAUSTED;
    const { agent_id } = await readSessionStart(context, account_id, session_id);
    const judgeSession = {
      agent_id,
      replay: { replay_id, session_id: replayed.session_id, role: 'judge' },
      instruction,
    } as const;
    await beginReplaySession(context, actor, sessionId, judgeSession);
    const agent = { ...judgeAgent({ agent_id, account_id, instruction, model }), revision };
    const next = async () => {
      const judgeTurn: ReplayedTurn = {
        replay_id,
        turn,
        after_turn: turns.lastTurn(),
        agent,
        compactions: [],
        findCall: ({ id }) => ({ call_id: id }),
        failsOnMissingCall: false,
      };
      return { agent_id, input, session_id: sessionId, replay: judgeTurn };
    };
    const toRun = {
      actor,
      session_id: sessionId,
      turns,
      recorded: turn,
      earlierTry,
      budget,
    };
    try {
      return judged(judgeResult(await replayTurnUntilEnded(replaying, toRun, next, signal)));
    } catch (error) {
      return failed(error);
    }
  };
