/** The SQL of lists of sessions: their conditions, and the indexes that a list may follow. */
import type { Listing, Parameter } from '../readModels/sqlDatabase.ts';
import { outcomeCondition } from './turns/outcomes.ts';
import { labelToken } from './labelToken.ts';
import { ANY_REPLAY, type SessionFilter } from './sessionFilter.ts';

interface Conditions {
  where: string;
  parameters: Parameter[];
}

/** Entries of an index; they include all sessions that a filter leaves. */
export interface SessionIndex extends Conditions {
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

type Column = [column: string, operator: '=' | '>=' | '<', value: string];

const given = (columns: readonly [Column[0], Column[1], value: string | undefined][]): Column[] =>
  columns.filter((column): column is Column => column[2] !== undefined);

const rangeOf = (column: 'created' | 'updated', filter: SessionFilter): Column[] =>
  given([
    [`sessions.${column}_at`, '>=', filter[`${column}_from`]],
    [`sessions.${column}_at`, '<', filter[`${column}_to`]],
  ]);

const ofReplay = (replay_id: SessionFilter['replay_id']): Column[] =>
  given([['sessions.replay_id', '=', replay_id === ANY_REPLAY ? undefined : replay_id]]);

const ofAgent = (agent_id: string | undefined): Column[] =>
  given([['sessions.agent_id', '=', agent_id]]);

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
 * True if the filter may exclude many sessions. A list of all sessions that no replay made has an
 * index of its own.
 */
export const isFiltered = ({ labels = [], order: _order, ...filter }: SessionFilter): boolean =>
  labels.length > 0 || Object.values(filter).some((value) => value !== undefined);

const indexOfSessions = (accountId: string, columns: readonly Column[]): SessionIndex => ({
  from: '{sessions}',
  key: 'sessions.session_id',
  where: [
    'sessions.account_id = ?',
    ...columns.map(([column, operator]) => `${column} ${operator} ?`),
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
 * has all sessions of the account.
 */
export function sessionIndexes(
  accountId: string,
  { labels = [], replay_id, agent_id, status, outcome, ...filter }: SessionFilter,
): SessionIndex[] {
  const by = (columns: readonly Column[]): SessionIndex[] =>
    columns.length === 0 ? [] : [indexOfSessions(accountId, columns)];
  const all = indexOfSessions(accountId, []);
  const where = (condition: string): SessionIndex => ({
    ...all,
    where: `${all.where} AND ${condition}`,
  });
  const times = [...by(rangeOf('created', filter)), ...by(rangeOf('updated', filter))];
  return [
    ...labels.map((label) => indexOfLabel(accountId, label)),
    ...by(ofReplay(replay_id)),
    ...(status === 'running' ? [where(`sessions.${STATUS.running}`)] : []),
    ...(outcome === undefined ? [] : [where(outcomeCondition(outcome))]),
    ...by(ofAgent(agent_id)),
    ...times.map((index) => ({ ...index, isOrdered: false })),
    all,
  ];
}

/** A list of sessions, and the parameters of its conditions. */
export interface SessionListing {
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
): SessionListing {
  const { where, parameters } = sessionConditions(accountId, filter);
  const list = { table: 'sessions', descending: order === 'newest' } as const;
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
  const isJoined = index.from !== '{sessions}';
  return {
    listing: {
      ...list,
      ...(isJoined && { from: `${index.from} CROSS JOIN {sessions}` }),
      key: index.key,
      where: `${index.where} AND ${isJoined ? `sessions.session_id = ${index.key} AND ` : ''}${where}`,
    },
    parameters: [...index.parameters, ...parameters],
  };
}
