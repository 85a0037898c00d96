import type { SessionToReplay } from './events.ts';

/** The progress of a session's replay. */
export interface ReplayedSession extends SessionToReplay {
  replay_session_id: string | undefined;
  /** The last recorded turn with a comparison. */
  compared: number;
  ended: boolean;
}

/** The sessions of a replay in order. Immutable. */
export interface ReplayedSessions {
  get(sessionId: string): ReplayedSession | undefined;
  all(): ReplayedSession[];
  /** A copy with one session changed. */
  with(sessionId: string, change: Partial<ReplayedSession>): ReplayedSessions;
}

/** Sessions per group. Each event changes one session, and copies only its group. */
const GROUP = 64;

function replayedSessions(
  indexes: ReadonlyMap<string, number>,
  groups: readonly (readonly ReplayedSession[])[],
): ReplayedSessions {
  return {
    get(sessionId) {
      const index = indexes.get(sessionId);
      return index === undefined ? undefined : groups[Math.floor(index / GROUP)]![index % GROUP];
    },
    all: () => groups.flat(),
    with(sessionId, change) {
      const index = indexes.get(sessionId)!;
      const at = Math.floor(index / GROUP);
      const group = groups[at]!;
      const session = { ...group[index % GROUP]!, ...change };
      return replayedSessions(indexes, groups.with(at, group.with(index % GROUP, session)));
    },
  };
}

/** The sessions before any is replayed. */
export function initialSessionStates(sessions: readonly SessionToReplay[]): ReplayedSessions {
  const fresh = { replay_session_id: undefined, compared: 0, ended: false };
  const groups = Array.from({ length: Math.ceil(sessions.length / GROUP) }, (_, at) =>
    sessions.slice(at * GROUP, (at + 1) * GROUP).map((session) => ({ ...session, ...fresh })),
  );
  return replayedSessions(
    new Map(sessions.map(({ session_id }, index) => [session_id, index])),
    groups,
  );
}
