import { LIMITS } from '../limits.ts';
import type { Bounds, Page, PageOf } from '../readModels/page.ts';
import type { Listing, Parameter, SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { SessionRow, TurnRow } from '../readModels/tables.ts';
import type { ListedSession } from '../search/turnIndex.ts';
import { readInSlices, type SlicedList } from '../readModels/slices.ts';
import { outcomeCondition, type EndOfTurnStatus } from './turns/outcomes.ts';
import { labelToken } from './labelToken.ts';
import { ANY_REPLAY, type SessionFilter } from './sessionFilter.ts';

export type OpenTurn = Pick<TurnRow, 'session_id' | 'turn' | 'owner' | 'deadline'> &
  Pick<SessionRow, 'account_id'>;

/** The columns that fix the present state of a session. */
export type SessionRevision = Pick<SessionRow, (typeof REVISION_COLUMNS)[number]>;

const REVISION_COLUMNS = ['session_id', 'revision', 'turns', 'forked_from'] as const;

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
  /** The same list, by a filter without words, and without the sessions' texts. */
  listSessionRevisions(
    accountId: string,
    page: Page & Omit<SessionFilter, 'words'>,
  ): Promise<PageOf<SessionRevision>>;
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

interface Conditions {
  where: string;
  parameters: Parameter[];
}

/** Entries of an index; they include all sessions that a filter leaves. */
interface SessionIndex extends Conditions {
  from: string;
  /** The session's id. */
  key: string;
  /** False if the entries are not in the order of lists. */
  isOrdered: boolean;
}

/** Keeps SQLite from reading the sessions first. More than a list sorts, as entries may be added. */
const MOST_SORTED = 10_000;

const HAS_LABEL =
  'EXISTS (SELECT 1 FROM {session_labels} AS other WHERE other.session_id = sessions.session_id AND other.token = ?)';

/** A partial index is only used for a condition without a parameter. */
const STATUS = { idle: "status = 'idle'", running: "status = 'running'" };

const NOT_ERASED = "sessions.status <> 'erased'";
/** The turns of an erased session may remain until they are deleted. */
const OF_SESSION = `session_id = (SELECT session_id FROM {sessions} WHERE session_id = ? AND ${NOT_ERASED})`;

type Column = [column: string, operator: '=' | '>=' | '<', value: string];

const presentColumns = (
  columns: readonly [Column[0], Column[1], value: string | undefined][],
): Column[] => columns.filter((column): column is Column => column[2] !== undefined);

const rangeOf = (column: 'created' | 'updated', filter: SessionFilter): Column[] =>
  presentColumns([
    [`sessions.${column}_at`, '>=', filter[`${column}_from`]],
    [`sessions.${column}_at`, '<', filter[`${column}_to`]],
  ]);

const ofReplay = (replay_id: SessionFilter['replay_id']): Column[] =>
  presentColumns([['sessions.replay_id', '=', replay_id === ANY_REPLAY ? undefined : replay_id]]);

const ofAgent = (agent_id: string | undefined): Column[] =>
  presentColumns([['sessions.agent_id', '=', agent_id]]);

const valuesOf = (columns: readonly Column[]): string[] => columns.map(([, , value]) => value);

/**
 * The SQL conditions of a filter on an account's sessions, except its words. Excludes erased
 * sessions. An expression keeps the databases from following another index than the list names.
 */
export function sessionConditions(
  accountId: string,
  { labels = [], replay_id, status, outcome, agent_id, ...filter }: SessionFilter,
): Conditions {
  const columns = [
    ...ofAgent(agent_id),
    ...rangeOf('created', filter),
    ...rangeOf('updated', filter),
    ...ofReplay(replay_id),
  ];
  const conditions = [
    ...labels.map(() => HAS_LABEL),
    ...columns.map(([column, operator]) => `coalesce(${column}, '') ${operator} ?`),
    'sessions.account_id = ?',
    ...(replay_id === undefined ? ['sessions.replay_id IS NULL'] : []),
    ...(status === undefined ? [] : [`sessions.${STATUS[status]}`]),
    ...(outcome === undefined ? [] : [outcomeCondition(outcome)]),
    NOT_ERASED,
  ];
  return {
    where: conditions.join(' AND '),
    parameters: [
      ...labels.map(([name, value]) => labelToken(accountId, name, value)),
      ...valuesOf(columns),
      accountId,
    ],
  };
}

/**
 * True if the filter may exclude many sessions. An index serves the list of
 * all sessions that no replay made.
 */
export const isFiltered = ({ labels = [], order: _order, ...filter }: SessionFilter): boolean =>
  labels.length > 0 || Object.values(filter).some((value) => value !== undefined);

/** The indexes of tables.ts by the sessions that they have, or by the column that they start with. */
const INDEX = {
  listed: 'sessions_1',
  all: 'sessions_2',
  agent: 'sessions_3',
  running: 'sessions_5',
  completed: 'sessions_6',
  failed: 'sessions_7',
  interrupted: 'sessions_8',
  created: 'sessions_9',
  updated: 'sessions_10',
  replay: 'sessions_11',
} as const;

const indexOfSessions = (
  accountId: string,
  name: keyof typeof INDEX,
  columns: readonly Column[] = [],
): SessionIndex => ({
  from: `{sessions INDEXED BY ${INDEX[name]}}`,
  key: 'sessions.session_id',
  where: [
    'sessions.account_id = ?',
    ...columns.map(([column, operator]) => `${column} ${operator} ?`),
    ...(name === 'updated' ? [NOT_ERASED] : []),
  ].join(' AND '),
  parameters: [accountId, ...valuesOf(columns)],
  isOrdered: true,
});

const indexOfLabel = (
  accountId: string,
  [name, value]: readonly [string, string],
): SessionIndex => ({
  from: '{session_labels} AS label',
  key: 'label.session_id',
  where: 'label.account_id = ? AND label.token = ?',
  parameters: [accountId, labelToken(accountId, name, value)],
  isOrdered: true,
});

/**
 * The indexes that a list with this filter may follow, the most selective ones first. The last one
 * has all sessions of the list.
 */
export function sessionIndexes(accountId: string, sessions: SessionFilter): SessionIndex[] {
  // Replays may have made many more sessions than the list has.
  if (!isFiltered(sessions)) return [indexOfSessions(accountId, 'listed')];
  const { labels = [], replay_id, agent_id, status, outcome, ...filter } = sessions;
  const by = (name: keyof typeof INDEX, columns: readonly Column[]): SessionIndex[] =>
    columns.length === 0 ? [] : [indexOfSessions(accountId, name, columns)];
  const where = (name: 'running' | EndOfTurnStatus, condition: string): SessionIndex => {
    const index = indexOfSessions(accountId, name);
    return { ...index, where: `${index.where} AND ${condition}` };
  };
  const times = (['created', 'updated'] as const).flatMap((time) =>
    by(time, rangeOf(time, filter)),
  );
  return [
    ...labels.map((label) => indexOfLabel(accountId, label)),
    ...by('replay', ofReplay(replay_id)),
    ...(status === 'running' ? [where('running', `sessions.${STATUS.running}`)] : []),
    ...(outcome === undefined ? [] : [where(outcome, outcomeCondition(outcome))]),
    ...by('agent', ofAgent(agent_id)),
    ...times.map((index) => ({ ...index, isOrdered: false })),
    indexOfSessions(accountId, 'all'),
  ];
}

/** A list of sessions, and the parameters of its conditions. */
interface SessionListing {
  listing: Listing<'sessions'>;
  parameters: Parameter[];
}

/**
 * The same selection as a list that follows an index, so that sessions without an entry in it are
 * not read. SQLite keeps the order of tables in a CROSS JOIN. The entries of an index in another order
 * are read and sorted as a whole: they must be few.
 */
export function sessionListing(
  accountId: string,
  { order = 'newest', ...filter }: SessionFilter,
  index: SessionIndex,
  columns?: readonly string[],
): SessionListing {
  const { where, parameters } = sessionConditions(accountId, filter);
  const descending = order === 'newest';
  const list = { table: 'sessions', ...(columns && { columns }), descending } as const;
  if (!index.isOrdered) {
    const from = `(SELECT session_id FROM ${index.from} WHERE ${index.where} LIMIT ${MOST_SORTED}) AS entry CROSS JOIN {sessions}`;
    return {
      listing: {
        ...list,
        from,
        key: 'entry.session_id',
        where: `sessions.session_id = entry.session_id AND ${where}`,
        isSorted: true,
      },
      parameters: [...index.parameters, ...parameters],
    };
  }
  const isJoined = index.key !== 'sessions.session_id';
  return {
    listing: {
      ...list,
      from: isJoined ? `${index.from} CROSS JOIN {sessions}` : index.from,
      key: index.key,
      where: `${index.where} AND ${isJoined ? `sessions.session_id = ${index.key} AND ` : ''}${where}`,
    },
    parameters: [...index.parameters, ...parameters],
  };
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
 * the list. The first slice is short, because it often fills the page. Reads all columns, or those given.
 */
function createFilteredList(
  database: SqlDatabase,
  columns?: readonly string[],
): SessionQueries['listSessions'] {
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
    const listing = sessionListing(accountId, filter, index, columns);
    yield { list: slicedList(database, filter, index, listing), entries: firstSlice };
    const list = slicedList(database.background(accountId), filter, index, listing);
    for (;;) yield { list, entries: share(laterSlice, filter) };
  }

  return async (accountId, { limit, bytes, after, ...filter }, signal) => {
    const bounds = { limit, bytes, ...(after !== undefined && { after }) };
    const index = await chooseIndex(accountId, filter, after);
    if (index.isOrdered && isFiltered(filter))
      return readInSlices(slicesOf(accountId, filter, index), bounds, signal);
    const { listing, parameters } = sessionListing(accountId, filter, index, columns);
    return database.page(listing)(parameters, bounds);
  };
}

export function createSessionQueries(database: SqlDatabase): SessionQueries {
  const { query, find, page, findWithPage, searchSessions } = database;
  const filtered = createFilteredList(database);
  const revisions = createFilteredList(database, REVISION_COLUMNS);
  const transcript = findWithPage(
    { table: 'sessions', where: 'session_id = ? AND account_id = ?' },
    { table: 'turns', key: 'turn', where: OF_SESSION },
  );
  const madeOf = (column: 'replay_of' | 'fork_of') =>
    page({ table: 'sessions', key: 'session_id', where: `${column} = ? AND ${NOT_ERASED}` });
  const [replaysOf, forksOf] = [madeOf('replay_of'), madeOf('fork_of')];
  return {
    findSession: find('sessions', 'WHERE session_id = ?'),
    async listSessions(accountId, { words, ...filter }, signal) {
      if (words) return searchSessions(accountId, { ...filter, words }, signal);
      return filtered(accountId, filter, signal);
    },
    listSessionRevisions: revisions,
    async findTranscript(accountId, sessionId, bounds) {
      const rowAndTurns = await transcript([sessionId, accountId], [sessionId], bounds);
      return rowAndTurns && { session: rowAndTurns.row, turns: rowAndTurns.page };
    },
    listReplaysOf: (sessionId, bounds) => replaysOf([sessionId], bounds),
    listForksOf: (sessionId, bounds) => forksOf([sessionId], bounds),
    findNewestSessionOf: find(
      'sessions',
      "WHERE agent_id = ? AND status <> 'erased' ORDER BY updated_at DESC LIMIT 1",
    ),
    listOpenTurns: query<OpenTurn>(
      "SELECT turns.session_id, account_id, turn, owner, deadline FROM {turns} JOIN {sessions} USING (session_id) WHERE turns.status = 'running' AND sessions.status <> 'erased' ORDER BY turns.session_id, turn",
    ),
  };
}
