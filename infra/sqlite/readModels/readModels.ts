import type { SQLInputValue } from 'node:sqlite';
import type { OpenTurn, Page, ParkedStream, ReadModels } from '../../../shared/ports/readModels.ts';
import type { ProgressFeed } from '../../../shared/projections/progress.ts';
import type { Rows, TableName } from '../../../shared/projections/rows.ts';
import { createReader, type Reader } from './reader.ts';
import { rowDecoder } from './tables.ts';

/** SQLite's "no limit". */
const ALL = -1;

function rowReader<Name extends TableName>(reader: Reader, table: Name) {
  const decode = rowDecoder(table);
  return {
    find(clauses: string, ...parameters: SQLInputValue[]): Rows[Name] | undefined {
      const found = reader.get(`SELECT * FROM ${table} ${clauses}`, ...parameters);
      return found && decode(found);
    },
    list: (clauses: string, ...parameters: SQLInputValue[]): Rows[Name][] =>
      reader.all(`SELECT * FROM ${table} ${clauses}`, ...parameters).map(decode),
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
 * The queries over the SQLite read models of `<folder>/read-models`, on a connection of the calling thread. `progress` comes
 * from whoever runs the projection; until it has once been caught up, every query rejects with `store_unavailable`.
 */
export function openSqliteReadModels({
  folder,
  progress,
}: {
  folder: string;
  progress: ProgressFeed;
}): ReadModels {
  const reader = createReader(folder, progress);
  const accounts = rowReader(reader, 'accounts');
  const apiKeys = rowReader(reader, 'api_keys');
  const agents = rowReader(reader, 'agents');
  const sessions = rowReader(reader, 'sessions');
  const turns = rowReader(reader, 'turns');

  return {
    findAccount: async (accountId) => accounts.find('WHERE account_id = ?', accountId),
    listAccounts: async () => accounts.list('ORDER BY account_id'),
    findApiKey: async (keyId) => apiKeys.find('WHERE key_id = ?', keyId),
    listApiKeys: async (accountId) =>
      apiKeys.list('WHERE account_id = ? ORDER BY key_id', accountId),
    hasApiKeys: async () => reader.get('SELECT 1 FROM api_keys LIMIT 1') !== undefined,
    findAgent: async (agentId) => agents.find('WHERE agent_id = ? AND deleted = 0', agentId),
    listAgents: async (accountId, { limit = ALL, after = '' }) =>
      agents.list(
        'WHERE account_id = ? AND deleted = 0 AND agent_id > ? ORDER BY agent_id LIMIT ?',
        accountId,
        after,
        limit,
      ),
    agentListVersion: async (accountId) => {
      const found = reader.get(
        'SELECT max(position) AS position FROM agents WHERE account_id = ?',
        accountId,
      );
      return `${reader.generation()}.${(found?.['position'] as string | null) ?? ''}`;
    },
    findSession: async (sessionId) => sessions.find('WHERE session_id = ?', sessionId),
    listSessions: async (accountId, page) => sessions.list(...sessionsClauses(accountId, page)),
    findTranscript: async (sessionId, { limit, after = 0 }) =>
      reader.snapshot(() => {
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
      reader.all(
        "SELECT turns.session_id, account_id, turn, owner, deadline FROM turns JOIN sessions USING (session_id) WHERE turns.status = 'running' ORDER BY turns.session_id, turn",
      ) as unknown as OpenTurn[],
    listParkedStreams: async () =>
      reader.all('SELECT * FROM parked_streams ORDER BY stream') as unknown as ParkedStream[],
    untilShown: reader.untilShown,
    close: async () => reader.close(),
  };
}
