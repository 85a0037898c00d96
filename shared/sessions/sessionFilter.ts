/** Sessions that a replay made as well as others. */
export const ANY_REPLAY = Symbol('any replay');

/** Which sessions are meant, all of it together, and in which order; instants in ISO 8601. */
export interface SessionFilter {
  agent_id?: string;
  status?: 'idle' | 'running';
  /** Names and values; a session has to have all of them. */
  labels?: readonly (readonly [name: string, value: string])[];
  /** Tokens of words; one turn of a session has to have all of them. */
  words?: readonly string[];
  /** Inclusive. */
  created_from?: string;
  /** Exclusive. */
  created_to?: string;
  updated_from?: string;
  updated_to?: string;
  /**
   * The sessions that this replay made, or all sessions of whatever origin; without it only those
   * that no replay made.
   */
  replay_id?: string | typeof ANY_REPLAY;
  /** By their ids. */
  order?: 'newest' | 'oldest';
}
