import type { EndOfTurnStatus } from './turns/outcomes.ts';

/** Includes sessions of replays and all others. */
export const ANY_REPLAY = Symbol('any replay');

/** Conditions for sessions, all of which must apply, and their order. Instants are in ISO 8601. */
export interface SessionFilter {
  agent_id?: string;
  status?: 'idle' | 'running';
  /** Only sessions with a turn of their own that ended so. */
  outcome?: EndOfTurnStatus;
  /** Names and values of labels. A session must have all of them. */
  labels?: readonly (readonly [name: string, value: string])[];
  /** Tokens of words. A single turn of the session must contain all of them. */
  words?: readonly string[];
  /** Inclusive. */
  created_from?: string;
  /** Exclusive. */
  created_to?: string;
  updated_from?: string;
  updated_to?: string;
  /**
   * Only sessions of this replay, or sessions of any origin. By default, only sessions that no
   * replay made.
   */
  replay_id?: string | typeof ANY_REPLAY;
  /** Order by id. */
  order?: 'newest' | 'oldest';
}
