import type { Decider } from '../domain/decider.ts';
import { Rejection } from '../domain/rejection.ts';
import type { Erasure } from '../domain/schema.ts';
import type {
  ReplayEnd,
  ReplayEvent,
  ReplaySettings,
  ReplayStartedData,
  SessionEnd,
  TurnComparison,
} from './events.ts';
import {
  initialSessionStates,
  type ReplayedSession,
  type ReplayedSessions,
} from './sessionStates.ts';

export type ReplayCommand =
  | { type: 'start_replay'; replay: ReplayStartedData }
  | { type: 'start_session'; session_id: string; replay_session_id: string }
  | {
      type: 'record_comparison';
      session_id: string;
      turns: TurnComparison[];
      end?: Omit<SessionEnd, 'session_id'>;
    }
  | ({ type: 'end_replay' } & ReplayEnd)
  | ({ type: 'erase_replay' } & Erasure);

export type ReplayState =
  | { status: 'none' | 'erased' }
  | {
      status: 'running' | 'ended';
      settings: ReplaySettings;
      sessions: ReplayedSessions;
      /** Tokens of compared turns and ended sessions. */
      tokens: number;
    };

type Live = Extract<ReplayState, { settings: ReplaySettings }>;

const missing = (): Rejection => new Rejection('replay_missing', 'There is no such replay.');

function live(state: ReplayState): Live {
  if (!('settings' in state)) throw missing();
  return state;
}

function running(state: ReplayState): Live {
  if (live(state).status !== 'running')
    throw new Rejection('replay_ended', 'The replay has ended.');
  return live(state);
}

function sessionIn(state: ReplayState, sessionId: string): ReplayedSession {
  const session = running(state).sessions.get(sessionId);
  if (!session) throw missing();
  return session;
}

function decide(command: ReplayCommand, state: ReplayState): ReplayEvent[] {
  switch (command.type) {
    case 'start_replay':
      if (state.status !== 'none')
        throw new Rejection('replay_exists', 'A replay of this id exists already.');
      return [{ type: 'replay.started.v1', data: command.replay }];
    case 'start_session': {
      const { session_id, replay_session_id } = command;
      // The session was already started and named, before a restart or by another process.
      if (sessionIn(state, session_id).replay_session_id !== undefined) return [];
      return [{ type: 'replay.session_started.v1', data: { session_id, replay_session_id } }];
    }
    case 'record_comparison': {
      const { session_id, turns, end } = command;
      const { compared, ended } = sessionIn(state, session_id);
      if (ended) return [];
      const fresh = turns.filter(({ turn }) => turn > compared);
      return [
        ...(fresh.length > 0
          ? [{ type: 'replay.turns_compared.v1' as const, data: { session_id, turns: fresh } }]
          : []),
        ...(end
          ? [{ type: 'replay.session_ended.v1' as const, data: { session_id, ...end } }]
          : []),
      ];
    }
    case 'end_replay': {
      const { type: _, ...data } = command;
      return live(state).status === 'ended' ? [] : [{ type: 'replay.ended.v1', data }];
    }
    case 'erase_replay': {
      if (state.status === 'none') throw missing();
      const { type: _, ...data } = command;
      return state.status === 'erased' ? [] : [{ type: 'replay.erased.v1', data }];
    }
    default:
      return command satisfies never;
  }
}

/** Tokens of a turn and its judges, including all attempts. */
const tokensOf = ({ replayed, other_tokens = 0, checks }: TurnComparison): number =>
  [replayed, ...checks].reduce((sum, part) => sum + (part?.tokens?.total ?? 0), other_tokens);

function withSession(
  state: ReplayState,
  sessionId: string,
  change: Partial<ReplayedSession>,
): Live {
  const before = live(state);
  return { ...before, sessions: before.sessions.with(sessionId, change) };
}

function evolve(state: ReplayState, event: ReplayEvent): ReplayState {
  switch (event.type) {
    case 'replay.started.v1': {
      const { sessions, ...settings } = event.data;
      return {
        status: 'running',
        settings,
        sessions: initialSessionStates(sessions),
        tokens: 0,
      };
    }
    case 'replay.session_started.v1': {
      const { session_id, replay_session_id } = event.data;
      return withSession(state, session_id, { replay_session_id });
    }
    case 'replay.turns_compared.v1': {
      const { session_id, turns } = event.data;
      const after = withSession(state, session_id, { compared: turns.at(-1)!.turn });
      return { ...after, tokens: turns.reduce((sum, turn) => sum + tokensOf(turn), after.tokens) };
    }
    case 'replay.session_ended.v1': {
      const { session_id, other_tokens = 0 } = event.data;
      const after = withSession(state, session_id, { ended: true });
      return { ...after, tokens: after.tokens + other_tokens };
    }
    case 'replay.ended.v1':
      return { ...live(state), status: 'ended' };
    case 'replay.erased.v1':
      return { status: 'erased' };
    default:
      return event satisfies never;
  }
}

/** A replay: each recorded session is run again in a new session, and both are compared. */
export const replay: Decider<ReplayCommand, ReplayState, ReplayEvent> = {
  initialState: { status: 'none' },
  decide,
  evolve,
};
