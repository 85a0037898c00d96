import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schema } from '../../api/client.ts';
import { isEnd, waterfallOf, type TurnEvent } from './waterfall.ts';

export type Turn = Schema<'Turn'>;
export type SessionEvent = Schema<'SessionEvent'>;

/** No session has so many turns: a page after this one has none. */
const AFTER_ALL_TURNS = 2_147_483_647;
const RUNNING_REFRESH_MS = 1_500;
const IDLE_REFRESH_MS = 5_000;
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

/** The turns `from` up to `to` (exclusive). A page of the API may have fewer than it could. */
export async function readTurns(sessionId: string, from: number, to: number, signal: AbortSignal) {
  const turns: Turn[] = [];
  for (let next = from; next < to; next = turns.at(-1)!.turn + 1) {
    const query = { after: next - 1, limit: to - next, reasoning: true };
    const page = await readTranscript(sessionId, query, signal);
    if (page.turns.length === 0) break;
    turns.push(...page.turns);
  }
  return turns;
}

/** The events with the revisions `from` up to `to` (exclusive), at most 200. */
export const readSessionEvents = (id: string, from: number, to: number, signal: AbortSignal) =>
  readEventPage(id, { limit: to - from, ...(from > 0 && { after: from - 1 }) }, signal);

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
