import type { Decider } from '../decider.ts';
import { Rejection } from '../rejection.ts';
import type {
  InterruptionReason,
  SessionEvent,
  ToolCalledData,
  TurnCompletedData,
  TurnFailedData,
  TurnStartedData,
} from './events.ts';

/** A run names its agent and leaves the turn's number to the session. */
export type SessionCommand =
  | {
      type: 'start_turn';
      agent_id: string;
      new_session: boolean;
      turn: Omit<TurnStartedData, 'turn'>;
    }
  | { type: 'record_tool_call'; call: ToolCalledData }
  | { type: 'complete_turn'; answer: TurnCompletedData }
  | { type: 'fail_turn'; failure: TurnFailedData }
  | { type: 'interrupt_turn'; turn: number; reason: InterruptionReason };

export type SessionState =
  | { status: 'none' }
  /** `turn` is the last turn that began, 0 before the first. */
  | { status: 'idle'; agent_id: string; turn: number }
  | { status: 'running'; agent_id: string; turn: number; owner: string; deadline: string };

function startTurn(
  command: Extract<SessionCommand, { type: 'start_turn' }>,
  state: SessionState,
): SessionEvent[] {
  if (state.status === 'none') {
    if (!command.new_session) throw new Rejection('session_missing', 'There is no such session.');
    return [
      { type: 'session.started.v1', data: { agent_id: command.agent_id } },
      { type: 'session.turn_started.v1', data: { turn: 1, ...command.turn } },
    ];
  }
  if (state.agent_id !== command.agent_id)
    throw new Rejection('session_of_another_agent', 'The session belongs to another agent.');
  if (state.status === 'running')
    throw new Rejection('turn_open', `Turn ${state.turn} of the session is running.`);
  return [{ type: 'session.turn_started.v1', data: { turn: state.turn + 1, ...command.turn } }];
}

function requireOpen(state: SessionState, turn: number): void {
  if (state.status !== 'running' || state.turn !== turn)
    throw new Rejection('turn_not_open', `Turn ${turn} of the session is not running.`);
}

function decide(command: SessionCommand, state: SessionState): SessionEvent[] {
  switch (command.type) {
    case 'start_turn':
      return startTurn(command, state);
    case 'record_tool_call':
      requireOpen(state, command.call.turn);
      return [{ type: 'session.tool_called.v1', data: command.call }];
    case 'complete_turn':
      requireOpen(state, command.answer.turn);
      return [{ type: 'session.turn_completed.v1', data: command.answer }];
    case 'fail_turn':
      requireOpen(state, command.failure.turn);
      return [{ type: 'session.turn_failed.v1', data: command.failure }];
    case 'interrupt_turn':
      requireOpen(state, command.turn);
      return [
        {
          type: 'session.turn_interrupted.v1',
          data: { turn: command.turn, reason: command.reason },
        },
      ];
    default:
      return command satisfies never;
  }
}

function evolve(state: SessionState, event: SessionEvent): SessionState {
  if (event.type === 'session.started.v1')
    return { status: 'idle', agent_id: event.data.agent_id, turn: 0 };
  if (state.status === 'none') throw new Error(`${event.type} before session.started.v1`);
  switch (event.type) {
    case 'session.turn_started.v1':
      return {
        status: 'running',
        agent_id: state.agent_id,
        turn: event.data.turn,
        owner: event.data.owner,
        deadline: event.data.deadline,
      };
    case 'session.tool_called.v1':
      return state;
    case 'session.turn_completed.v1':
    case 'session.turn_failed.v1':
    case 'session.turn_interrupted.v1':
      return { status: 'idle', agent_id: state.agent_id, turn: event.data.turn };
    default:
      return event satisfies never;
  }
}

/** A session: turns that happen one after the other, each ended once. Its state needs only `session.started` and the last turn's events. */
export const session: Decider<SessionCommand, SessionState, SessionEvent> = {
  initialState: { status: 'none' },
  decide,
  evolve,
};
