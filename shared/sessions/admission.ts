import { Rejection } from '../domain/rejection.ts';
import type {
  CommandOf,
  RunningSession,
  SessionCommand,
  SessionState,
  TurnOfRun,
} from './commands.ts';

function notErased({ status }: SessionState): void {
  if (status === 'erased') throw new Rejection('session_erased', 'The session was erased.');
}

/** For what begins a session. */
function notThere({ status }: SessionState): void {
  if (status !== 'none') throw new Rejection('session_exists', 'There is such a session already.');
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

/** For what may wait, and begins no session. */
function thereBetweenTurns(state: SessionState): void {
  atAnyTime(state);
  betweenTurns(state);
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
 * session's erasure, may end the turn from outside; to an erased session nothing is added. Every type of
 * command says here when it may happen; one without a line does not compile.
 */
const ADMISSION: {
  [Type in SessionCommand['type']]: (state: SessionState, command: CommandOf<Type>) => void;
} = {
  start_turn: betweenTurns,
  begin_session: notThere,
  fork_session: notThere,
  record_tool_call: byItsRun,
  complete_turn: byItsRun,
  fail_turn: byItsRun,
  interrupt_turn: whileOpen,
  describe_session: thereBetweenTurns,
  compact_session: thereBetweenTurns,
  erase_session: atAnyTime,
};

/** Errors: Rejection where the command may not happen now. */
export function admit(state: SessionState, command: SessionCommand): void {
  const requirement = ADMISSION[command.type] as (
    state: SessionState,
    command: SessionCommand,
  ) => void;
  requirement(state, command);
}
