import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schema } from '../../api/client.ts';
import { isEnd, waterfalls, type TurnEvent, type Waterfall } from './waterfall.ts';

export type Turn = Schema<'Turn'>;
export type SessionEvent = Schema<'SessionEvent'>;

/** No session has so many turns: a page after this one has none. */
const AFTER_ALL_TURNS = 2_147_483_647;
const RUNNING_REFRESH_MS = 1_500;
const IDLE_REFRESH_MS = 5_000;
const EVENT_PAGE = 200;
/** Events of a page of turns are read in at most so many requests. */
const MOST_EVENT_PAGES = 50;

interface TranscriptQuery {
  limit: number;
  after?: number;
  at_turn?: number;
  reasoning?: boolean;
}
const readTranscript = (sessionId: string, query: TranscriptQuery, signal: AbortSignal) =>
  dataOf(api.GET('/v1/sessions/{sessionId}', { params: { path: { sessionId }, query }, signal }));

const readEventPage = (
  sessionId: string,
  query: { limit: number; after?: number },
  signal: AbortSignal,
) =>
  dataOf(
    api.GET('/v1/sessions/{sessionId}/events', { params: { path: { sessionId }, query }, signal }),
  );

/** A session without its turns, and the number of its first turn that was not erased. */
export const sessionQuery = (sessionId: string) =>
  queryOptions({
    queryKey: ['session', sessionId, 'head'],
    queryFn: async ({ signal }) => {
      const end = { limit: 1, after: AFTER_ALL_TURNS };
      const session = await readTranscript(sessionId, end, signal);
      const isErased = session.forked_from?.erased === true;
      const { turns } = isErased ? await readTranscript(sessionId, { limit: 1 }, signal) : session;
      return { session, first: turns[0]?.turn ?? 1 };
    },
    refetchInterval: ({ state: { data, error } }) =>
      !error && (data?.session.status === 'running' ? RUNNING_REFRESH_MS : IDLE_REFRESH_MS),
  });

interface Bounds {
  from: number;
  to: number;
}

/** The turns `from` up to `to` (inclusive). A page of the API may have fewer than it could. */
async function readTurns(sessionId: string, { from, to }: Bounds, signal: AbortSignal) {
  const turns: Turn[] = [];
  for (let after = from - 1; after < to; after = turns.at(-1)!.turn) {
    const query = { after, limit: to - after, reasoning: true };
    const page = await readTranscript(sessionId, query, signal);
    if (page.turns.length === 0) break;
    turns.push(...page.turns);
  }
  return turns;
}

/** The events with the revisions `from` up to `to` (inclusive). */
export async function readEventsBetween(
  sessionId: string,
  { from, to }: Bounds,
  signal: AbortSignal,
): Promise<SessionEvent[]> {
  const events: SessionEvent[] = [];
  for (let next = from; next <= to; next = events.at(-1)!.revision + 1) {
    const limit = Math.min(to - next + 1, EVENT_PAGE);
    const query = { limit, ...(next > 0 && { after: next - 1 }) };
    const page = await readEventPage(sessionId, query, signal);
    if (page.length === 0) break;
    events.push(...page);
  }
  return events;
}

/** The revision after which a turn begins in the stream of the session that recorded it. */
async function revisionBefore(sessionId: string, turn: Turn, signal: AbortSignal): Promise<number> {
  const before = turn.turn - 1;
  if (before === 0) return 0;
  const query = { at_turn: before, after: before, limit: 1 };
  const { at } = await readTranscript(sessionId, query, signal);
  // The first turn of its own that a fork has follows the start of its stream.
  return at && at.origin_session_id === turn.origin_session_id ? at.revision : 0;
}

/** The events of turns that one session recorded, from the first of them to the end of the last. */
async function readEventsOfTurns(sessionId: string, turns: readonly Turn[], signal: AbortSignal) {
  const recordedBy = turns[0]!.origin_session_id ?? sessionId;
  const last = turns.at(-1)!.turn;
  const events: TurnEvent[] = [];
  let after = await revisionBefore(sessionId, turns[0]!, signal);
  for (let page = 0; page < MOST_EVENT_PAGES; page += 1) {
    const rows = (await readEventPage(
      recordedBy,
      { limit: EVENT_PAGE, after },
      signal,
    )) as TurnEvent[];
    events.push(...rows);
    const isBeyond = rows.some(
      (event) => event.data.turn! > last || (event.data.turn === last && isEnd(event)),
    );
    if (isBeyond || rows.length === 0) break;
    after = rows.at(-1)!.revision;
  }
  return events;
}

/** A turn, and in the timeline what it did with its time. */
export interface TimedTurn {
  turn: Turn;
  waterfall?: Waterfall | undefined;
}

/** Reads the turns `from` up to `to` (inclusive) as a tab shows them. */
export async function readTurnsFor(
  tab: 'transcript' | 'timeline',
  { sessionId, ...bounds }: Bounds & { sessionId: string },
  signal: AbortSignal,
): Promise<TimedTurn[]> {
  const turns = await readTurns(sessionId, bounds, signal);
  if (tab === 'transcript') return turns.map((turn) => ({ turn }));
  const byOrigin = Map.groupBy(turns, ({ origin_session_id }) => origin_session_id);
  const found = await Promise.all(
    Array.from(byOrigin.values(), async (ofOrigin) =>
      waterfalls(await readEventsOfTurns(sessionId, ofOrigin, signal)),
    ),
  );
  const all = new Map(found.flatMap((each) => [...each]));
  return turns.map((turn) => ({ turn, waterfall: all.get(turn.turn) }));
}
