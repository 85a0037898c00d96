import type { Bounds, Page, PageOf } from '../readModels/page.ts';
import type { Listing, Parameter, SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { SessionRow, TurnRow } from '../readModels/tables.ts';
import type { ListedSession } from '../search/turnIndex.ts';
import { labelToken } from './labelToken.ts';
import { ANY_REPLAY, type SessionFilter } from './sessionFilter.ts';

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

export interface SessionConditions {
  /** Condition on `sessions`. */
  where: string;
  parameters: string[];
  /** True if the filter may exclude most of an account's sessions. */
  isFiltered: boolean;
}

const HAS_LABEL =
  'EXISTS (SELECT 1 FROM {session_labels} AS other WHERE other.session_id = sessions.session_id AND other.token = ?)';

/**
 * The SQL conditions of a filter on an account's sessions, except its words. Excludes erased
 * sessions.
 */
export function sessionConditions(
  accountId: string,
  { labels = [], replay_id, ...filter }: SessionFilter,
): SessionConditions {
  const columns = [
    ['agent_id =', filter.agent_id],
    ['status =', filter.status],
    ['created_at >=', filter.created_from],
    ['created_at <', filter.created_to],
    ['updated_at >=', filter.updated_from],
    ['updated_at <', filter.updated_to],
    ['replay_id =', replay_id === ANY_REPLAY ? undefined : replay_id],
  ].filter((column): column is [string, string] => column[1] !== undefined);
  const conditions = [
    ...labels.map(() => HAS_LABEL),
    ...columns.map(([condition]) => `sessions.${condition} ?`),
    'sessions.account_id = ?',
    ...(replay_id === undefined ? ['sessions.replay_id IS NULL'] : []),
    "sessions.status <> 'erased'",
  ];
  return {
    where: conditions.join(' AND '),
    parameters: [
      ...labels.map(([name, value]) => labelToken(accountId, name, value)),
      ...columns.map(([, value]) => value),
      accountId,
    ],
    isFiltered: columns.length + labels.length > 0,
  };
}

/**
 * The SQL of the same selection as a list. It follows the index of the first label, which is in the
 * order of the list, so that sessions without that label are not read. SQLite keeps the order of
 * tables in a CROSS JOIN.
 */
export function sessionListing(
  accountId: string,
  { labels = [], order = 'newest', ...filter }: SessionFilter,
): { listing: Listing<'sessions'>; parameters: Parameter[] } {
  const [first, ...others] = labels;
  const { where, parameters } = sessionConditions(accountId, { ...filter, labels: others });
  const descending = order === 'newest';
  if (!first)
    return {
      listing: { table: 'sessions', key: 'sessions.session_id', where, descending },
      parameters,
    };
  return {
    listing: {
      table: 'sessions',
      from: '{session_labels} AS label CROSS JOIN {sessions}',
      key: 'label.session_id',
      where: `label.account_id = ? AND label.token = ? AND sessions.session_id = label.session_id AND ${where}`,
      descending,
    },
    parameters: [accountId, labelToken(accountId, ...first), ...parameters],
  };
}

export function createSessionQueries(database: SqlDatabase): SessionQueries {
  const { query, find, page, findWithPage, searchSessions } = database;
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
      const { listing, parameters } = sessionListing(accountId, filter);
      return page(listing)(parameters, filter);
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
