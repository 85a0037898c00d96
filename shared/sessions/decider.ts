import type { Decider } from '../domain/decider.ts';
import { Rejection } from '../domain/rejection.ts';
import type { Erasure } from '../domain/schema.ts';
import { descriptionEvents, type Description } from './description.ts';
import type {
  ForkPoint,
  SessionCompactedData,
  SessionEvent,
  SessionStartedData,
  ToolCalledData,
  TurnCompletedData,
  TurnFailedData,
  TurnInterruptedData,
  TurnStartedData,
} from './events.ts';

/** The open turn of a run, and the instance that runs it. */
interface OwnedTurn {
  turn: number;
  owner: string;
}

/** The data that a fork starts with. */
export interface ForkStart extends Pick<SessionStartedData, 'agent_id' | 'instruction'> {
  forked_from: ForkPoint;
}

/** Commands on sessions. A run names its agent, and the session assigns the number of the turn. */
export type SessionCommand =
  | {
      type: 'start_turn';
      agent_id: string;
      new_session: boolean;
      /** The end user whose chat token starts the session. */
      user_hmac?: string;
      turn: Omit<TurnStartedData, 'turn'>;
      /** For a turn of a replay: the replay, and the last turn that it has seen in the session. */
      replay?: { replay_id: string; after_turn: number };
    }
  /** Creates the session of a replay before its first turn. */
  | ({ type: 'begin_session' } & Required<Pick<SessionStartedData, 'replay'>> &
      Omit<SessionStartedData, 'replay'>)
  | ({ type: 'fork_session' } & ForkStart)
  | { type: 'record_tool_call'; run: OwnedTurn; call: Omit<ToolCalledData, 'turn'> }
  | { type: 'complete_turn'; run: OwnedTurn; answer: Omit<TurnCompletedData, 'turn'> }
  | { type: 'fail_turn'; run: OwnedTurn; failure: Omit<TurnFailedData, 'turn'> }
  | ({ type: 'interrupt_turn' } & TurnInterruptedData)
  | { type: 'describe_session'; before: Description; after: Description }
  | { type: 'compact_session'; compaction: SessionCompactedData }
  | ({ type: 'erase_session' } & Erasure);
export type CommandOf<Type> = Extract<SessionCommand, { type: Type }>;
export type SessionState =
  | { status: 'none' }
  /** `turn` is the last turn that began; 0 before the first. */
  | ({ status: 'idle'; turn: number } & SessionIdentity)
  | ({ status: 'running'; deadline: string } & OwnedTurn & SessionIdentity)
  | ({ status: 'erased'; turn: number } & SessionIdentity);
/**
 * The agent of a session and, if present, the session's instruction and the replay that made the
 * session.
 */
interface SessionIdentity {
  agent_id: string;
  instruction?: string;
  replay_id?: string;
}
/** A session with an open turn. */
export type RunningSession = Extract<SessionState, { status: 'running' }>;

/** The events of an erasure. An open turn ends with it. A second erasure produces no events. */
function eraseSessionEvents(
  data: Erasure,
  state: { status: string; turn?: number },
): SessionEvent[] {
  if (state.status === 'erased') return [];
  const erased: SessionEvent = { type: 'session.erased.v1', data };
  if (state.status !== 'running') return [erased];
  const end = { turn: state.turn!, reason: 'cancelled' } as const;
  return [{ type: 'session.turn_interrupted.v1', data: end }, erased];
}

function requireNotErased({ status }: SessionState): void {
  if (status === 'erased') throw new Rejection('session_erased', 'The session was erased.');
}

/** For commands that start a session. */
function requireNew({ status }: SessionState): void {
  if (status !== 'none') throw new Rejection('session_exists', 'There is such a session already.');
}

/** For commands that wait until no turn is open. */
function requireBetweenTurns(state: SessionState): void {
  requireNotErased(state);
  if (state.status === 'running')
    throw new Rejection('turn_open', `Turn ${state.turn} of the session is running.`);
}

/**
 * For commands that end a turn from outside. The sender must make sure that no run still has the
 * turn.
 */
function requireOpenTurn(
  state: SessionState,
  { turn }: { turn: number },
): asserts state is RunningSession {
  requireNotErased(state);
  if (state.status !== 'running' || state.turn !== turn)
    throw new Rejection('turn_not_open', `Turn ${turn} of the session is not running.`);
}

/** For commands that also end an open turn. */
function requireExisting({ status }: SessionState): void {
  if (status === 'none') throw new Rejection('session_missing', 'There is no such session.');
}

/** For commands that wait until no turn is open and do not start a session. */
function requireExistingBetweenTurns(state: SessionState): void {
  requireExisting(state);
  requireBetweenTurns(state);
}

/** For commands of the turn's own run. */
function requireOwnRun(state: SessionState, { run }: { run: OwnedTurn }): void {
  requireOpenTurn(state, run);
  if (state.owner !== run.owner)
    throw new Rejection('turn_of_another_run', `Turn ${run.turn} is run by another instance.`);
}

/**
 * The precondition of each command. While a turn is open, only its run writes to the session, so
 * that no other event precedes the answer. From outside, only an interruption or the erasure of the
 * session can end the turn. An erased session accepts no events. A command type without an entry
 * does not compile.
 */
const PRECONDITIONS: {
  [Type in SessionCommand['type']]: (state: SessionState, command: CommandOf<Type>) => void;
} = {
  start_turn: requireBetweenTurns,
  begin_session: requireNew,
  fork_session: requireNew,
  record_tool_call: requireOwnRun,
  complete_turn: requireOwnRun,
  fail_turn: requireOwnRun,
  interrupt_turn: requireOpenTurn,
  describe_session: requireExistingBetweenTurns,
  compact_session: requireExistingBetweenTurns,
  erase_session: requireExisting,
};

function requireAllowed(state: SessionState, command: SessionCommand): void {
  const requirement = PRECONDITIONS[command.type] as (
    state: SessionState,
    command: SessionCommand,
  ) => void;
  requirement(state, command);
}

/** Checked first, so that a request with another agent does not learn whether the session is busy. */
function requireSessionOf(command: CommandOf<'start_turn'>, state: SessionState): void {
  if (state.status === 'none') {
    if (!command.new_session) throw new Rejection('session_missing', 'There is no such session.');
  } else if (state.agent_id !== command.agent_id)
    throw new Rejection('session_of_another_agent', 'The session belongs to another agent.');
  else requireReplayOf(command, state);
}

/** A session made by a replay only accepts turns of that replay, each once. */
function requireReplayOf(
  { replay }: CommandOf<'start_turn'>,
  state: Exclude<SessionState, { status: 'none' }>,
): void {
  if (state.replay_id !== replay?.replay_id)
    throw new Rejection('session_of_replay', 'The session was made by a replay.');
  if (replay && replay.after_turn !== state.turn)
    throw new Rejection('session_moved', 'Another turn of the session has begun meanwhile.');
}

function startTurn(
  { agent_id, turn, user_hmac }: CommandOf<'start_turn'>,
  state: SessionState,
): SessionEvent[] {
  const started = (number: number): SessionEvent => ({
    type: 'session.turn_started.v1',
    data: { turn: number, ...turn },
  });
  return state.status === 'none'
    ? [
        {
          type: 'session.started.v1',
          data: { agent_id, ...(user_hmac !== undefined && { user_hmac }) },
        },
        started(1),
      ]
    : [started(state.turn + 1)];
}

function decide(command: SessionCommand, state: SessionState): SessionEvent[] {
  if (command.type === 'start_turn') requireSessionOf(command, state);
  requireAllowed(state, command);
  switch (command.type) {
    case 'start_turn':
      return startTurn(command, state);
    case 'begin_session':
    case 'fork_session': {
      const { type: _type, ...data } = command;
      return [{ type: 'session.started.v1', data }];
    }
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
    case 'compact_session':
      return [{ type: 'session.compacted.v1', data: command.compaction }];
    case 'describe_session':
      return state.status === 'none'
        ? []
        : descriptionEvents(command.before, command.after, state.turn);
    case 'erase_session': {
      const { type: _, ...data } = command;
      return eraseSessionEvents(data, state);
    }
    default:
      return command satisfies never;
  }
}

function evolve(state: SessionState, event: SessionEvent): SessionState {
  if (event.type === 'session.started.v1') {
    const { agent_id, forked_from, instruction, replay } = event.data;
    return {
      status: 'idle',
      agent_id,
      turn: forked_from?.turn ?? 0,
      ...(instruction !== undefined && { instruction }),
      ...(replay && { replay_id: replay.replay_id }),
    };
  }
  if (state.status === 'none') throw new Error(`${event.type} before session.started.v1`);
  const { agent_id, instruction, replay_id } = state;
  const whose = {
    agent_id,
    ...(instruction !== undefined && { instruction }),
    ...(replay_id !== undefined && { replay_id }),
  };
  switch (event.type) {
    case 'session.turn_started.v1':
      return {
        status: 'running',
        ...whose,
        turn: event.data.turn,
        owner: event.data.owner,
        deadline: event.data.deadline,
      };
    case 'session.tool_called.v1':
    case 'session.compacted.v1':
      return state;
    case 'session.described.v1': {
      // Events of early releases do not name the turn.
      const { last_turn } = event.data;
      return last_turn === undefined ? state : { status: 'idle', ...whose, turn: last_turn };
    }
    case 'session.turn_completed.v1':
    case 'session.turn_failed.v1':
    case 'session.turn_interrupted.v1':
      return { status: 'idle', ...whose, turn: event.data.turn };
    case 'session.erased.v1':
      return { status: 'erased', ...whose, turn: state.turn };
    default:
      return event satisfies never;
  }
}

/**
 * A session: consecutive turns, each of which ends once. The state only needs `session.started` and
 * the events of the last turn. A second erasure produces no events.
 */
export const session: Decider<SessionCommand, SessionState, SessionEvent> = {
  initialState: { status: 'none' },
  decide,
  evolve,
};
