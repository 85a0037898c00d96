import type { SQLInputValue } from 'node:sqlite';
import type { OpenTurn, Page, ParkedStream, ReadModels } from '../../../shared/ports/readModels.ts';
import type { ProgressSource } from '../../../shared/projections/progress.ts';
import { TABLES, type Rows, type TableName } from '../../../shared/readModels/tables.ts';
import { createFollower, type Follower } from './follower.ts';
import type { Found } from './generationReader.ts';
import { rowDecoder } from './statements.ts';

/** SQLite's "no limit". */
const ALL = -1;

function rowReader<Name extends TableName>({ current }: Follower, table: Name) {
  const decode = rowDecoder(TABLES[table]) as (found: Found) => Rows[Name];
  return {
    find(clauses: string, ...parameters: SQLInputValue[]): Rows[Name] | undefined {
      const found = current().get(`SELECT * FROM ${table} ${clauses}`, ...parameters);
      return found && decode(found);
    },
    list: (clauses: string, ...parameters: SQLInputValue[]): Rows[Name][] =>
      current()
        .all(`SELECT * FROM ${table} ${clauses}`, ...parameters)
        .map(decode),
  };
}

type SessionPage = Page & { limit: number; agent_id?: string };

function sessionsClauses(
  accountId: string,
  { limit, after, agent_id }: SessionPage,
): [string, ...SQLInputValue[]] {
  const conditions: [string, SQLInputValue | undefined][] = [
    ['account_id = ?', accountId],
    ['agent_id = ?', agent_id],
    ['session_id < ?', after],
  ];
  const given = conditions.filter(
    (condition): condition is [string, SQLInputValue] => condition[1] !== undefined,
  );
  return [
    `WHERE ${given.map(([sql]) => sql).join(' AND ')} ORDER BY session_id DESC LIMIT ?`,
    ...given.map(([, value]) => value),
    limit,
  ];
}

/**
 * The queries over the SQLite read models of `<folder>/read-models`, on a connection of the calling
 * thread. `progress` comes from whoever runs the projection; until it has once been caught up,
 * every query rejects with `store_unavailable`.
 */
export function openSqliteReadModels({
  folder,
  progress,
}: {
  folder: string;
  progress: ProgressSource;
}): ReadModels {
  const follower = createFollower(folder, progress);
  const { current } = follower;
  const accounts = rowReader(follower, 'accounts');
  const apiKeys = rowReader(follower, 'api_keys');
  const agents = rowReader(follower, 'agents');
  const sessions = rowReader(follower, 'sessions');
  const turns = rowReader(follower, 'turns');

  return {
    listAccounts: async () => accounts.list('ORDER BY account_id'),
    findAccount: async (accountId) => accounts.find('WHERE account_id = ?', accountId),
    findApiKey: async (keyId) => apiKeys.find('WHERE key_id = ?', keyId),
    findApiKeyByHash: async (hash) => apiKeys.find('WHERE hash = ? ORDER BY key_id LIMIT 1', hash),
    listApiKeys: async (accountId) =>
      apiKeys.list('WHERE account_id = ? ORDER BY key_id', accountId),
    hasApiKeys: async () => current().get('SELECT 1 FROM api_keys LIMIT 1') !== undefined,
    findAgent: async (agentId) => agents.find('WHERE agent_id = ? AND NOT deleted', agentId),
    listAgents: async (accountId, { limit = ALL, after = '' }) =>
      agents.list(
        'WHERE account_id = ? AND NOT deleted AND agent_id > ? ORDER BY agent_id LIMIT ?',
        accountId,
        after,
        limit,
      ),
    agentListVersion: async (accountId) => {
      const { get, generation } = current();
      const found = get(
        'SELECT max(position) AS position FROM agents WHERE account_id = ?',
        accountId,
      );
      return `${generation}.${(found?.['position'] as string | null) ?? ''}`;
    },
    findSession: async (sessionId) => sessions.find('WHERE session_id = ?', sessionId),
    listSessions: async (accountId, page) => sessions.list(...sessionsClauses(accountId, page)),
    findTranscript: async (sessionId, { limit, after = 0 }) =>
      current().snapshot(() => {
        const session = sessions.find('WHERE session_id = ?', sessionId);
        return (
          session && {
            session,
            turns: turns.list(
              'WHERE session_id = ? AND turn > ? ORDER BY turn LIMIT ?',
              sessionId,
              after,
              limit,
            ),
          }
        );
      }),
    listOpenTurns: async () =>
      current().all(
        "SELECT turns.session_id, account_id, turn, owner, deadline FROM turns JOIN sessions USING (session_id) WHERE turns.status = 'running' ORDER BY turns.session_id, turn",
      ) as unknown as OpenTurn[],
    listParkedStreams: async () =>
      current().all('SELECT * FROM parked_streams ORDER BY stream') as unknown as ParkedStream[],
    untilShown: follower.untilShown,
    close: async () => follower.close(),
  };
}
