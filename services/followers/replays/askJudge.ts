import type { AskJudge, Judged } from '../../../shared/replays/comparison/comparePair.ts';
import { codeOf } from '../../../shared/replays/comparison/compareTurn.ts';
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
import { replayTurnUntilEnded } from './replayTurn.ts';

/** Nobody has made it: it is as much of an agent as a run needs to ask a model. */
const judgeOf = (own: Pick<AgentRow, 'agent_id' | 'account_id' | 'instruction' | 'model'>) => ({
  ...own,
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

/** Of a judge that was not asked, since the tokens were used before. */
const UNASKED = { code: 'budget_exhausted' } as const;

/** What a judge has answered, or why it did not. */
function saidBy({ end }: WholeTurn): Pick<Judged, 'output' | 'code'> {
  if (end?.type === 'session.turn_completed.v1') return { output: end.data.output };
  return { code: codeOf(end) ?? 'turn_interrupted' };
}

/** Asks models that judge replayed turns, each in a session of its own that says what it is. */
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
    const judged = (said: Pick<Judged, 'output' | 'code'>): Judged => ({
      session_id: sessionId,
      ...said,
      ...(turns.tokens().total > 0 && { tokens: turns.tokens() }),
    });
    const unable = (error: unknown): Judged => {
      signal.throwIfAborted();
      if (error instanceof BudgetSpent) return judged(UNASKED);
      if (isTransientFailure(error) || !isTurnlogError(error)) throw error;
      return judged({ code: error.code });
    };

    let made: WholeTurn | undefined;
    try {
      made = await turns.lastTry(turn);
    } catch (error) {
      return unable(error);
    }
    // Whoever ran the replay before may have asked it.
    if (made?.end?.type === 'session.turn_completed.v1') return judged(saidBy(made));
    if (budget.isSpent()) return made ? judged(UNASKED) : UNASKED;
    const { agent_id } = await readSessionStart(context, account_id, session_id);
    const begun = {
      agent_id,
      replay: { replay_id, session_id: replayed.session_id, role: 'judge' },
      instruction,
    } as const;
    await beginReplaySession(context, actor, sessionId, begun);
    const agent = { ...judgeOf({ agent_id, account_id, instruction, model }), revision };
    const next = async () => {
      const asked: ReplayedTurn = {
        replay_id,
        turn,
        after_turn: turns.lastTurn(),
        agent,
        compactions: [],
        recordedResult: () => undefined,
        failsOnMissingCall: false,
      };
      return { agent_id, input, session_id: sessionId, replay: asked };
    };
    const toRun = { actor, turns, recorded: turn, made, budget };
    try {
      return judged(saidBy(await replayTurnUntilEnded(replaying, toRun, next, signal)));
    } catch (error) {
      return unable(error);
    }
  };
