import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schema } from '../../api/client.ts';
import { waterfalls, type Waterfall } from './waterfall.ts';

export type Turn = Schema<'Turn'>;
export type SessionEvent = Schema<'SessionEvent'>;

/** No session has so many turns: a page after this one has none. */
const AFTER_ALL_TURNS = 2_147_483_647;
const RUNNING_REFRESH_MS = 1_500;
const IDLE_REFRESH_MS = 5_000;
const EVENT_PAGE = 200;
/** Events of a page of turns are read in at most so many requests. */
const MOST_EVENT_PAGES = 50;

const path = (sessionId: string) => ({ path: { sessionId } });

/** A session without its turns; it is read again while it is shown. */
export const sessionQuery = (sessionId: string) =>
  queryOptions({
    queryKey: ['session', sessionId, 'head'],
    queryFn: ({ signal }) => {
      const query = { limit: 1, after: AFTER_ALL_TURNS };
      const params = { ...path(sessionId), query };
      return dataOf(api.GET('/v1/sessions/{sessionId}', { params, signal }));
    },
    refetchInterval: ({ state: { data, error } }) =>
      error ? false : data?.status === 'running' ? RUNNING_REFRESH_MS : IDLE_REFRESH_MS,
  });

/** The number of the first turn of a fork whose first turns were erased. */
export const firstTurnQuery = (sessionId: string, isErased: boolean) =>
  queryOptions({
    queryKey: ['session', sessionId, 'first'],
    queryFn: async ({ signal }) => {
      const params = { ...path(sessionId), query: { limit: 1 } };
      const { turns } = await dataOf(api.GET('/v1/sessions/{sessionId}', { params, signal }));
      return turns[0]?.turn ?? 1;
    },
    enabled: isErased,
  });

/** The turns `from` up to `to` (inclusive). A page of the API may have fewer than it could. */
export async function readTurns(
  sessionId: string,
  { from, to }: { from: number; to: number },
  signal: AbortSignal,
): Promise<Turn[]> {
  const turns: Turn[] = [];
  for (let after = from - 1; after < to;) {
    const query = { after, limit: to - after, reasoning: true };
    const params = { ...path(sessionId), query };
    const page = await dataOf(api.GET('/v1/sessions/{sessionId}', { params, signal }));
    const last = page.turns.at(-1);
    if (!last) break;
    turns.push(...page.turns);
    after = last.turn;
  }
  return turns;
}

/** The events with the revisions `from` up to `to` (inclusive). */
export async function readEventsBetween(
  sessionId: string,
  { from, to }: { from: number; to: number },
  signal: AbortSignal,
): Promise<SessionEvent[]> {
  const events: SessionEvent[] = [];
  for (let next = from; next <= to;) {
    const limit = Math.min(to - next + 1, EVENT_PAGE);
    const query = { limit, ...(next > 0 && { after: next - 1 }) };
    const params = { ...path(sessionId), query };
    const page = await dataOf(api.GET('/v1/sessions/{sessionId}/events', { params, signal }));
    const last = page.at(-1);
    if (!last) break;
    events.push(...page);
    next = last.revision + 1;
  }
  return events;
}

/** The revision after which the events of a turn begin in the stream of the session that recorded it. */
async function revisionBefore(
  sessionId: string,
  { turn, origin_session_id }: Turn,
  signal: AbortSignal,
): Promise<number> {
  if (turn === 1) return 0;
  const query = { at_turn: turn - 1, after: turn - 1, limit: 1 };
  const params = { ...path(sessionId), query };
  const { at } = await dataOf(api.GET('/v1/sessions/{sessionId}', { params, signal }));
  // The first turn of its own that a fork has follows the start of its stream.
  return at && at.origin_session_id === origin_session_id ? at.revision : 0;
}

/** The events of turns that one session recorded, from the first of them to the end of the last. */
async function readEventsOfTurns(
  sessionId: string,
  turns: readonly Turn[],
  signal: AbortSignal,
): Promise<SessionEvent[]> {
  const recordedBy = turns[0]!.origin_session_id ?? sessionId;
  const last = turns.at(-1)!;
  const events: SessionEvent[] = [];
  let after = await revisionBefore(sessionId, turns[0]!, signal);
  for (let page = 0; page < MOST_EVENT_PAGES; page += 1) {
    const query = { limit: EVENT_PAGE, after };
    const params = { ...path(recordedBy), query };
    const rows = await dataOf(api.GET('/v1/sessions/{sessionId}/events', { params, signal }));
    events.push(...rows);
    const isBeyond = rows.some(
      ({ data, type }) =>
        'turn' in data &&
        (data.turn > last.turn ||
          (data.turn === last.turn && /turn_(completed|failed|interrupted)/.test(type))),
    );
    if (isBeyond || rows.length === 0) break;
    after = rows.at(-1)!.revision;
  }
  return events;
}

/** The turns `from` up to `to`, each with what it did with its time. */
export async function readTimeline(
  sessionId: string,
  bounds: { from: number; to: number },
  signal: AbortSignal,
): Promise<{ turn: Turn; waterfall: Waterfall | undefined }[]> {
  const turns = await readTurns(sessionId, bounds, signal);
  const byOrigin = Map.groupBy(turns, ({ origin_session_id }) => origin_session_id);
  const found = await Promise.all(
    Array.from(byOrigin.values(), async (ofOrigin) =>
      waterfalls(await readEventsOfTurns(sessionId, ofOrigin, signal)),
    ),
  );
  const all = new Map(found.flatMap((each) => [...each]));
  return turns.map((turn) => ({ turn, waterfall: all.get(turn.turn) }));
}
