import type { Decider } from '../decider.ts';
import { Rejection } from '../rejection.ts';
import type { Erasure } from '../schema.ts';
import type {
  SessionEvent,
  ToolCalledData,
  TurnCompletedData,
  TurnFailedData,
  TurnInterruptedData,
  TurnStartedData,
} from './events.ts';

/** The open turn that a run acts for, and the instance that runs it. */
interface TurnOfRun {
  turn: number;
  owner: string;
}

/** A run names its agent and leaves the turn's number to the session. */
export type SessionCommand =
  | {
      type: 'start_turn';
      agent_id: string;
      new_session: boolean;
      turn: Omit<TurnStartedData, 'turn'>;
    }
  | { type: 'record_tool_call'; run: TurnOfRun; call: Omit<ToolCalledData, 'turn'> }
  | { type: 'complete_turn'; run: TurnOfRun; answer: Omit<TurnCompletedData, 'turn'> }
  | { type: 'fail_turn'; run: TurnOfRun; failure: Omit<TurnFailedData, 'turn'> }
  | ({ type: 'interrupt_turn' } & TurnInterruptedData)
  | ({ type: 'erase_session' } & Erasure);
type CommandOf<Type> = Extract<SessionCommand, { type: Type }>;

export type SessionState =
  | { status: 'none' }
  /** `turn` is the last turn that began, 0 before the first. */
  | { status: 'idle'; agent_id: string; turn: number }
  | ({ status: 'running'; agent_id: string; deadline: string } & TurnOfRun)
  | { status: 'erased'; agent_id: string; turn: number };
/** A session with an open turn. */
export type RunningSession = Extract<SessionState, { status: 'running' }>;

function notErased({ status }: SessionState): void {
  if (status === 'erased') throw new Rejection('session_erased', 'The session was erased.');
}

/** For what may wait until the turn has ended. */
function betweenTurns(state: SessionState): void {
  notErased(state);
  if (state.status === 'running')
    throw new Rejection('turn_open', `Turn ${state.turn} of the session is running.`);
}

/** For what ends a turn from outside: whether anybody still runs it is for the sender to know. */
function whileOpen(
  state: SessionState,
  { turn }: { turn: number },
): asserts state is RunningSession {
  notErased(state);
  if (state.status !== 'running' || state.turn !== turn)
    throw new Rejection('turn_not_open', `Turn ${turn} of the session is not running.`);
}

/** For what ends the session, whatever it is at: an open turn ends with it. */
function atAnyTime({ status }: SessionState): void {
  if (status === 'none') throw new Rejection('session_missing', 'There is no such session.');
}

/** For what belongs to a turn. */
function byItsRun(state: SessionState, { run }: { run: TurnOfRun }): void {
  whileOpen(state, run);
  if (state.owner !== run.owner)
    throw new Rejection('turn_of_another_run', `Turn ${run.turn} is run by another instance.`);
}

/**
 * Who may append while a turn is open. A run is the only writer of its session then: nothing may
 * come between it and the place of the answer that it has paid for. Only an interruption, or the
 * session's erasure, may end the turn from outside; to an erased session nothing is added. Each
 * type of command says here when it may happen; without a line it does not compile.
 */
const ADMISSION: {
  [Type in SessionCommand['type']]: (state: SessionState, command: CommandOf<Type>) => void;
} = {
  start_turn: betweenTurns,
  record_tool_call: byItsRun,
  complete_turn: byItsRun,
  fail_turn: byItsRun,
  interrupt_turn: whileOpen,
  erase_session: atAnyTime,
};

function admit(state: SessionState, command: SessionCommand): void {
  const requirement = ADMISSION[command.type] as (
    state: SessionState,
    command: SessionCommand,
  ) => void;
  requirement(state, command);
}

/** Comes first: whoever asks with another agent is not told whether the session is busy. */
function requireSessionOf(command: CommandOf<'start_turn'>, state: SessionState): void {
  if (state.status === 'none') {
    if (!command.new_session) throw new Rejection('session_missing', 'There is no such session.');
  } else if (state.agent_id !== command.agent_id)
    throw new Rejection('session_of_another_agent', 'The session belongs to another agent.');
}

function startTurn(
  { agent_id, turn }: CommandOf<'start_turn'>,
  state: SessionState,
): SessionEvent[] {
  const started = (number: number): SessionEvent => ({
    type: 'session.turn_started.v1',
    data: { turn: number, ...turn },
  });
  return state.status === 'none'
    ? [{ type: 'session.started.v1', data: { agent_id } }, started(1)]
    : [started(state.turn + 1)];
}

function eraseSession(
  { type: _type, ...data }: CommandOf<'erase_session'>,
  state: SessionState,
): SessionEvent[] {
  if (state.status === 'erased') return [];
  const erased: SessionEvent = { type: 'session.erased.v1', data };
  if (state.status !== 'running') return [erased];
  const { turn } = state;
  return [{ type: 'session.turn_interrupted.v1', data: { turn, reason: 'cancelled' } }, erased];
}

function decide(command: SessionCommand, state: SessionState): SessionEvent[] {
  if (command.type === 'start_turn') requireSessionOf(command, state);
  admit(state, command);
  switch (command.type) {
    case 'start_turn':
      return startTurn(command, state);
    case 'record_tool_call': {
      const { run, call } = command;
      return [{ type: 'session.tool_called.v1', data: { ...call, turn: run.turn } }];
    }
    case 'complete_turn': {
      const { run, answer } = command;
      return [{ type: 'session.turn_completed.v1', data: { ...answer, turn: run.turn } }];
    }
    case 'fail_turn': {
      const { run, failure } = command;
      return [{ type: 'session.turn_failed.v1', data: { ...failure, turn: run.turn } }];
    }
    case 'interrupt_turn': {
      const { type: _type, ...data } = command;
      return [{ type: 'session.turn_interrupted.v1', data }];
    }
    case 'erase_session':
      return eraseSession(command, state);
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
    case 'session.erased.v1':
      return { status: 'erased', agent_id: state.agent_id, turn: state.turn };
    default:
      return event satisfies never;
  }
}

/**
 * A session: turns that happen one after the other, each ended once. Its state needs only
 * `session.started` and the last turn's events. Erasing it again decides nothing.
 */
export const session: Decider<SessionCommand, SessionState, SessionEvent> = {
  initialState: { status: 'none' },
  decide,
  evolve,
};
