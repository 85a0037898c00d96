import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schema } from '../../api/client.ts';
import { isEnd, waterfallOf, type TurnEvent } from './waterfall.ts';

export type Turn = Schema<'Turn'>;
export type SessionEvent = Schema<'SessionEvent'>;

/** No session has so many turns: a page after this one has none. */
const AFTER_ALL_TURNS = 2_147_483_647;
const RUNNING_REFRESH_MS = 1_500;
const IDLE_REFRESH_MS = 5_000;
/** Entries of a page in the lists of turns and events. The account's audit records each read of events. */
export const PAGE_SIZES = { turns: 20, events: 100 } as const;
/** Recorded entries do not change, but a page that is not full may have got more since it was read. */
const recorded = (pageSize: number) => ({
  staleTime: ({ state }: { state: { data: unknown[] | undefined } }) =>
    state.data?.length === pageSize ? Infinity : 0,
  // The view invalidates them when the session changes.
  refetchOnWindowFocus: false,
  gcTime: 30_000,
});
const EVENT_PAGE = 200;
/** Events of a turn are read in at most so many requests. */
const MOST_EVENT_PAGES = 50;

interface PageQuery {
  limit: number;
  after?: number;
  at_turn?: number;
  reasoning?: boolean;
}

const readTranscript = (sessionId: string, query: PageQuery, signal: AbortSignal) =>
  dataOf(api.GET('/v1/sessions/{sessionId}', { params: { path: { sessionId }, query }, signal }));

const readEventPage = (sessionId: string, query: PageQuery, signal: AbortSignal) =>
  dataOf(
    api.GET('/v1/sessions/{sessionId}/events', { params: { path: { sessionId }, query }, signal }),
  );

/** A session without its turns, and the number of its first turn that was not erased. */
export const sessionQuery = (sessionId: string) =>
  queryOptions({
    queryKey: ['session', sessionId, 'head'],
    queryFn: async ({ signal }) => {
      const session = await readTranscript(sessionId, { limit: 1, after: AFTER_ALL_TURNS }, signal);
      const isErased = session.forked_from?.erased === true;
      const { turns } = isErased ? await readTranscript(sessionId, { limit: 1 }, signal) : session;
      return { session, first: turns[0]?.turn ?? 1 };
    },
    refetchInterval: ({ state: { data, error } }) =>
      !error && (data?.session.status === 'running' ? RUNNING_REFRESH_MS : IDLE_REFRESH_MS),
  });

/** A page of the turns from `first` on. */
export const turnPageQuery = (sessionId: string, first: number, page: number) => ({
  queryKey: ['session', sessionId, 'entries', 'turns', first, page],
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const turns: Turn[] = [];
    let next = first + page * PAGE_SIZES.turns;
    // A response may have fewer turns than it could.
    for (let end = next + PAGE_SIZES.turns; next < end; next = turns.at(-1)!.turn + 1) {
      const query = { after: next - 1, limit: end - next, reasoning: true };
      const read = await readTranscript(sessionId, query, signal);
      if (read.turns.length === 0) break;
      turns.push(...read.turns);
      end = Math.min(end, read.turn_count + 1);
    }
    return turns;
  },
  ...recorded(PAGE_SIZES.turns),
});

/** A page of the events. */
export const eventPageQuery = (sessionId: string, page: number) => ({
  queryKey: ['session', sessionId, 'entries', 'events', page],
  queryFn: ({ signal }: { signal: AbortSignal }) => {
    const limit = PAGE_SIZES.events;
    const query = { limit, ...(page > 0 && { after: page * limit - 1 }) };
    return readEventPage(sessionId, query, signal);
  },
  ...recorded(PAGE_SIZES.events),
});

/** The revision after which a turn begins in the stream of the session that recorded it. */
async function revisionBefore(sessionId: string, turn: Turn, signal: AbortSignal): Promise<number> {
  const before = turn.turn - 1;
  if (before === 0) return 0;
  const query = { at_turn: before, after: before, limit: 1 };
  const { at } = await readTranscript(sessionId, query, signal);
  // A fork's own first turn follows the start of its stream.
  return at && at.origin_session_id === turn.origin_session_id ? at.revision : 0;
}

/** The calls of a turn over time, from its events; undefined without the start of the turn. */
export const waterfallQuery = (sessionId: string, turn: Turn) => {
  // An ended turn does not change.
  const group = turn.status === 'running' ? 'entries' : 'ended';
  return queryOptions({
    queryKey: ['session', sessionId, group, 'waterfall', turn.turn],
    queryFn: async ({ signal }) => {
      const recordedBy = turn.origin_session_id ?? sessionId;
      const events: TurnEvent[] = [];
      let after = await revisionBefore(sessionId, turn, signal);
      for (let page = 0; page < MOST_EVENT_PAGES; page += 1) {
        const query = { limit: EVENT_PAGE, after };
        const rows = (await readEventPage(recordedBy, query, signal)) as TurnEvent[];
        const ofTurn = rows.filter(({ data }) => data.turn === turn.turn);
        events.push(...ofTurn);
        if (rows.length === 0 || ofTurn.some(isEnd)) break;
        after = rows.at(-1)!.revision;
      }
      return waterfallOf(events) ?? null;
    },
    staleTime: Infinity,
  });
};
