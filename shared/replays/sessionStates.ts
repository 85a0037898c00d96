import type { SessionToReplay } from './events.ts';

/** How far the replay of a session is. */
export interface ReplayedSession extends SessionToReplay {
  replay_session_id: string | undefined;
  /** The last recorded turn that was compared. */
  compared: number;
  ended: boolean;
}

/** The sessions of a replay, in order; none of them changes. */
export interface ReplayedSessions {
  get(sessionId: string): ReplayedSession | undefined;
  all(): ReplayedSession[];
  /** The same with one of them changed. */
  with(sessionId: string, change: Partial<ReplayedSession>): ReplayedSessions;
}

/** So many are copied where one changes, and not all: each event changes one. */
const GROUP = 64;

function replayedSessions(
  places: ReadonlyMap<string, number>,
  groups: readonly (readonly ReplayedSession[])[],
): ReplayedSessions {
  return {
    get(sessionId) {
      const place = places.get(sessionId);
      return place === undefined ? undefined : groups[Math.floor(place / GROUP)]![place % GROUP];
    },
    all: () => groups.flat(),
    with(sessionId, change) {
      const place = places.get(sessionId)!;
      const at = Math.floor(place / GROUP);
      const group = groups[at]!;
      const session = { ...group[place % GROUP]!, ...change };
      return replayedSessions(places, groups.with(at, group.with(place % GROUP, session)));
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
    new Map(sessions.map(({ session_id }, place) => [session_id, place])),
    groups,
  );
}
