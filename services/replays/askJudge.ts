import type { AskJudge } from '../../shared/commands/replays/comparePair.ts';
import { judgeSessionOf } from '../../shared/commands/replays/judgeSession.ts';
import { beginningOf, beginReplaySession } from '../../shared/commands/replays/replaySession.ts';
import { readReplayedTurns } from '../../shared/commands/replays/replayedTurns.ts';
import type { ReplayedTurn } from '../../shared/commands/run/request.ts';
import { isTurnlogError } from '../../shared/errors.ts';
import type { AgentRow } from '../../shared/readModels/tables.ts';
import { isPassing } from './patience.ts';
import type { Replaying } from './replaying.ts';
import { runTurn } from './runTurn.ts';

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

/** Asks models that judge replayed turns, each in a session of its own that says what it is. */
export const askJudgeWith =
  (replaying: Omit<Replaying, 'compareTurn'>): AskJudge =>
  async ({ pair, check, model, instruction, input }, signal) => {
    const { context } = replaying;
    const { replay, session_id, recorded } = pair;
    const { replay_id, account_id } = replay;
    const actor = { account_id, key_id: 'system', request_id: replay_id };
    const { agent_id } = await beginningOf(context, account_id, session_id);
    const judge_session_id = judgeSessionOf(pair.replayed!, check);
    const begun = {
      agent_id,
      replay: { replay_id, session_id, role: 'judge' },
      instruction,
    } as const;
    await beginReplaySession(context, actor, judge_session_id, begun);
    const turns = readReplayedTurns(context, judge_session_id, 0);
    const { turn, agent_revision: revision } = recorded.started;
    const agent = { ...judgeOf({ agent_id, account_id, instruction, model }), revision };
    const next = async () => {
      const asked: ReplayedTurn = {
        replay_id,
        turn,
        after_turn: turns.lastTurn(),
        agent,
        compactions: [],
        answer: () => undefined,
        stops: false,
      };
      return { agent_id, input, session_id: judge_session_id, replay: asked };
    };
    try {
      const before = await turns.lastTry(turn);
      const { end } =
        before?.end?.type === 'session.turn_completed.v1'
          ? before
          : await runTurn(replaying, { actor, turns, recorded: turn }, next, signal);
      if (end?.type === 'session.turn_completed.v1') {
        const { output, tokens } = end.data;
        return { session_id: judge_session_id, output, tokens };
      }
      const code = end?.type === 'session.turn_failed.v1' ? end.data.code : 'turn_interrupted';
      return { session_id: judge_session_id, code };
    } catch (error) {
      signal.throwIfAborted();
      if (isPassing(error) || !isTurnlogError(error)) throw error;
      return { session_id: judge_session_id, code: error.code };
    }
  };
