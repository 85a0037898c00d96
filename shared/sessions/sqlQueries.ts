import { LIMITS } from '../limits.ts';
import type { Bounds, Page, PageOf } from '../readModels/page.ts';
import type { SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { SessionRow, TurnRow } from '../readModels/tables.ts';
import type { ListedSession } from '../search/turnIndex.ts';
import { readInSlices, type SlicedList } from '../readModels/slices.ts';
import type { SessionFilter } from './sessionFilter.ts';
import {
  isFiltered,
  sessionIndexes,
  sessionListing,
  type SessionIndex,
  type SessionListing,
} from './sessionListing.ts';

export type OpenTurn = Pick<TurnRow, 'session_id' | 'turn' | 'owner' | 'deadline'> &
  Pick<SessionRow, 'account_id'>;

export interface TranscriptRows {
  session: SessionRow;
  turns: PageOf<TurnRow>;
}

/** Queries for sessions and turns, part of the read models port. */
export interface SessionQueries {
  findSession(sessionId: string): Promise<SessionRow | undefined>;
  /**
   * Newest first unless `order` says otherwise. Excludes erased sessions. The signal can end a
   * search by words between two of its steps. Throws the abort reason.
   */
  listSessions(
    accountId: string,
    page: Page & SessionFilter,
    signal?: AbortSignal,
  ): Promise<PageOf<ListedSession>>;
  /**
   * The account's session and a page of its turns from the same moment, oldest first, after turn
   * number `after`. Reads no turns if the session belongs to another account, so that the query
   * takes as long as for an unknown id.
   */
  findTranscript(
    accountId: string,
    sessionId: string,
    page: Bounds & { after?: number },
  ): Promise<TranscriptRows | undefined>;
  /** Sessions in which replays repeated this one, ordered by id. Excludes erased sessions. */
  listReplaysOf(sessionId: string, page: Page): Promise<PageOf<SessionRow>>;
  /** Sessions that were forked from this one, ordered by id. Excludes erased sessions. */
  listForksOf(sessionId: string, page: Page): Promise<PageOf<SessionRow>>;
  /** The agent's session with the latest last event. Excludes erased sessions. */
  findNewestSessionOf(agentId: string): Promise<SessionRow | undefined>;
  /** Turns without a recorded end. */
  listOpenTurns(): Promise<OpenTurn[]>;
}

const { firstSlice, laterSlice, narrowIndex } = LIMITS.sessionList;

/** How many entries take as long as so many without labels to look up. */
const share = (entries: number, { labels = [] }: SessionFilter): number =>
  Math.ceil(entries / (1 + labels.length));

type Queries = Pick<SqlDatabase, 'query' | 'page'>;

/** How conditions and orders are written in a list's direction. */
const wordsFor = ({ order = 'newest' }: SessionFilter) =>
  order === 'newest'
    ? ({ beyond: '<', upTo: '>=', direction: 'DESC' } as const)
    : ({ beyond: '>', upTo: '<=', direction: 'ASC' } as const);

/** The key of the nth entry of an index after a key; undefined if there are fewer. */
async function findNthKey(
  { query }: Queries,
  filter: SessionFilter,
  { from, key, where, parameters }: SessionIndex,
  { n, after }: { n: number; after: string | undefined },
): Promise<string | undefined> {
  const { beyond, direction } = wordsFor(filter);
  const start = after === undefined ? [] : [after];
  const conditions = [where, ...start.map(() => `${key} ${beyond} ?`)].join(' AND ');
  const sql = `SELECT ${key} AS nth FROM ${from} WHERE ${conditions} ORDER BY ${key} ${direction} LIMIT 1 OFFSET ?`;
  const [row] = await query<{ nth: string }>(sql)(...parameters, ...start, n - 1);
  return row?.nth;
}

/** The list of the sessions in an index, whose entries are read without the rows. */
const slicedList = (
  queries: Queries,
  filter: SessionFilter,
  index: SessionIndex,
  { listing, parameters }: SessionListing,
): SlicedList<SessionRow> => ({
  nthKey: (n, after) => findNthKey(queries, filter, index, { n, after }),
  read(bounds, last) {
    const end = last === undefined ? [] : [last];
    const isWithin = end.map(() => `${index.key} ${wordsFor(filter).upTo} ?`);
    const where = [listing.where, ...isWithin].join(' AND ');
    return queries.page({ ...listing, where })([...parameters, ...end], bounds);
  },
});

/**
 * Lists sessions by an index that leaves few of them, or else in slices of an index in the order of
 * the list. The first slice is short, because it often fills the page.
 */
function createFilteredList(database: SqlDatabase): SessionQueries['listSessions'] {
  async function hasFewEntries(
    { from, where, parameters }: SessionIndex,
    entries: number,
  ): Promise<boolean> {
    const sql = `SELECT count(*) AS entries FROM (SELECT 1 FROM ${from} WHERE ${where} LIMIT ?) AS found`;
    const [row] = await database.query<{ entries: number }>(sql)(...parameters, entries + 1);
    return row!.entries <= entries;
  }

  /** Chooses an index with few entries, or else the one in whose order the next entries reach furthest. */
  async function chooseIndex(
    accountId: string,
    filter: SessionFilter,
    after: string | undefined,
  ): Promise<SessionIndex> {
    const [first, ...others] = sessionIndexes(accountId, filter);
    if (others.length === 0) return first!;
    const entries = share(narrowIndex, filter);
    let chosen: { index: SessionIndex; reached: string } | undefined;
    for (const index of [first!, ...others.slice(0, -1)]) {
      if (!index.isOrdered) {
        if (await hasFewEntries(index, entries)) return index;
        continue;
      }
      const reached = await findNthKey(database, filter, index, { n: entries, after });
      if (reached === undefined) return index;
      const isFurther = chosen && reached < chosen.reached === (filter.order !== 'oldest');
      if (!chosen || isFurther) chosen = { index, reached };
    }
    return chosen?.index ?? others.at(-1)!;
  }

  function* slicesOf(accountId: string, filter: SessionFilter, index: SessionIndex) {
    const listing = sessionListing(accountId, filter, index);
    yield { list: slicedList(database, filter, index, listing), entries: firstSlice };
    const list = slicedList(database.background(accountId), filter, index, listing);
    for (;;) yield { list, entries: share(laterSlice, filter) };
  }

  return async (accountId, { limit, bytes, after, ...filter }, signal) => {
    const bounds = { limit, bytes, ...(after !== undefined && { after }) };
    const index = await chooseIndex(accountId, filter, after);
    if (index.isOrdered && isFiltered(filter))
      return readInSlices(slicesOf(accountId, filter, index), bounds, signal);
    const { listing, parameters } = sessionListing(accountId, filter, index);
    return database.page(listing)(parameters, bounds);
  };
}

export function createSessionQueries(database: SqlDatabase): SessionQueries {
  const { query, find, page, findWithPage, searchSessions } = database;
  const filtered = createFilteredList(database);
  const transcript = findWithPage(
    { table: 'sessions', where: 'session_id = ? AND account_id = ?' },
    { table: 'turns', key: 'turn', where: 'session_id = ?' },
  );
  const replaysOf = page({
    table: 'sessions',
    key: 'session_id',
    where: "replay_of = ? AND status <> 'erased'",
  });
  const forksOf = page({
    table: 'sessions',
    key: 'session_id',
    where: "fork_of = ? AND status <> 'erased'",
  });
  return {
    findSession: find('sessions', 'WHERE session_id = ?'),
    async listSessions(accountId, { words, ...filter }, signal) {
      if (words) return searchSessions(accountId, { ...filter, words }, signal);
      return filtered(accountId, filter, signal);
    },
    async findTranscript(accountId, sessionId, bounds) {
      const found = await transcript([sessionId, accountId], [sessionId], bounds);
      return found && { session: found.row, turns: found.page };
    },
    listReplaysOf: (sessionId, bounds) => replaysOf([sessionId], bounds),
    listForksOf: (sessionId, bounds) => forksOf([sessionId], bounds),
    findNewestSessionOf: find(
      'sessions',
      "WHERE agent_id = ? AND status <> 'erased' ORDER BY updated_at DESC LIMIT 1",
    ),
    listOpenTurns: query<OpenTurn>(
      "SELECT turns.session_id, account_id, turn, owner, deadline FROM {turns} JOIN {sessions} USING (session_id) WHERE turns.status = 'running' ORDER BY turns.session_id, turn",
    ),
  };
}
