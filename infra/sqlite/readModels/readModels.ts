import type { SQLInputValue } from 'node:sqlite';
import type { OpenTurn, Page, ParkedStream, ReadModels } from '../../../shared/ports/readModels.ts';
import type { ProgressSource } from '../../../shared/projections/progress.ts';
import { sessionConditions } from '../../../shared/readModels/sessionConditions.ts';
import type { SessionFilter } from '../../../shared/readModels/sessionFilter.ts';
import { createFollower } from './follower.ts';
import { replayReads } from './replayReads.ts';
import { rowReader } from './rowReader.ts';
import { usageQueries } from './usage.ts';

/** An erased account has none any more. */
const HAS_KEYS = 'SELECT 1 FROM api_keys UNION ALL SELECT 1 FROM accounts WHERE erased LIMIT 1';

/**
 * What follows SELECT and its table. A label is looked up in the order of the list, so that rows
 * without it are not read: `+` keeps the planner from going through all of the account's.
 */
function sessionsClauses(
  accountId: string,
  page: Page & SessionFilter,
): [string, ...SQLInputValue[]] {
  const { columns, fixed, tokens, descending } = sessionConditions(accountId, page);
  const [, ...further] = tokens;
  const isLabelled = tokens.length > 0;
  const conditions = [
    isLabelled
      ? 'label.account_id = ? AND label.token = ? AND +sessions.account_id = label.account_id'
      : 'sessions.account_id = ?',
    ...further.map(
      () =>
        'EXISTS (SELECT 1 FROM session_labels AS other WHERE other.session_id = sessions.session_id AND other.token = ?)',
    ),
    ...columns.map(([condition]) => {
      if (!isLabelled) return `sessions.${condition} ?`;
      return condition.startsWith('session_id')
        ? `label.${condition} ?`
        : `+sessions.${condition} ?`;
    }),
    ...fixed.map((condition) => `sessions.${condition}`),
    "sessions.status <> 'erased'",
  ];
  const join = isLabelled ? 'JOIN session_labels AS label USING (session_id) ' : '';
  const key = `${isLabelled ? 'label' : 'sessions'}.session_id`;
  return [
    `${join}WHERE ${conditions.join(' AND ')} ORDER BY ${key} ${descending ? 'DESC' : 'ASC'}`,
    accountId,
    ...tokens,
    ...columns.map(([, value]) => value),
  ];
}

/**
 * The queries over the SQLite read models of `<folder>/read-models`, and which generation they read, on
 * a connection of the calling thread. `progress` comes from whoever runs the projection; until it has once been caught up,
 * every query rejects with `store_unavailable`.
 */
export function openSqliteReadModels({
  folder,
  progress,
}: {
  folder: string;
  progress: ProgressSource;
}): ReadModels & { generation: () => number } {
  const follower = createFollower(folder, progress);
  const { current } = follower;
  const accounts = rowReader(follower, 'accounts');
  const apiKeys = rowReader(follower, 'api_keys');
  const agents = rowReader(follower, 'agents');
  const sessions = rowReader(follower, 'sessions');
  const turns = rowReader(follower, 'turns');
  const webhooks = rowReader(follower, 'webhooks');
  const erasures = rowReader(follower, 'erasures');

  return {
    listAccounts: async () => accounts.list('WHERE NOT erased ORDER BY account_id'),
    findAccount: async (accountId) => accounts.find('WHERE account_id = ?', accountId),
    findApiKey: async (keyId) => apiKeys.find('WHERE key_id = ?', keyId),
    findApiKeyByHash: async (hash) => apiKeys.find('WHERE hash = ? ORDER BY key_id LIMIT 1', hash),
    listApiKeys: async (accountId) =>
      apiKeys.list('WHERE account_id = ? ORDER BY key_id', accountId),
    hasApiKeys: async () => current().get(HAS_KEYS) !== undefined,
    findAgent: async (agentId) =>
      agents.find('WHERE agent_id = ? AND (erased OR NOT deleted)', agentId),
    listAgents: async (accountId, page) =>
      agents.page(
        page,
        `WHERE account_id = ? AND NOT ${page.deleted ? 'erased' : 'deleted'} AND agent_id > ? ORDER BY agent_id`,
        accountId,
        page.after ?? '',
      ),
    agentListVersion: async (accountId) => {
      const { get, generation } = current();
      const found = get(
        "SELECT agent_id || '.' || revision || '.' || updated_at AS last FROM agents WHERE account_id = ? ORDER BY position DESC LIMIT 1",
        accountId,
      );
      return `${generation}.${(found?.['last'] as string | undefined) ?? ''}`;
    },
    findSession: async (sessionId) => sessions.find('WHERE session_id = ?', sessionId),
    listSessions: async (accountId, page) =>
      sessions.page(page, ...sessionsClauses(accountId, page)),
    findTranscript: async (accountId, sessionId, page) =>
      current().snapshot(() => {
        const session = sessions.find(
          'WHERE session_id = ? AND account_id = ?',
          sessionId,
          accountId,
        );
        return (
          session && {
            session,
            turns: turns.page(
              page,
              'WHERE session_id = ? AND turn > ? ORDER BY turn',
              sessionId,
              page.after ?? 0,
            ),
          }
        );
      }),
    ...usageQueries(follower),
    listReplaysOf: async (sessionId, page) =>
      sessions.page(
        page,
        "WHERE replay_of = ? AND status <> 'erased' AND session_id > ? ORDER BY session_id",
        sessionId,
        page.after ?? '',
      ),
    findWebhook: async (webhookId) => webhooks.find('WHERE webhook_id = ?', webhookId),
    listWebhooks: async (accountId, page) =>
      webhooks.page(
        page,
        `WHERE account_id = ? AND NOT ${page.deleted ? 'erased' : 'deleted'} AND webhook_id > ? ORDER BY webhook_id`,
        accountId,
        page.after ?? '',
      ),
    listEnabledWebhooks: async (limit) =>
      webhooks.list('WHERE disabled IS NULL AND NOT deleted ORDER BY webhook_id LIMIT ?', limit),
    ...replayReads(follower),
    listOpenTurns: async () =>
      current().all(
        "SELECT turns.session_id, account_id, turn, owner, deadline FROM turns JOIN sessions USING (session_id) WHERE turns.status = 'running' ORDER BY turns.session_id, turn",
      ) as unknown as OpenTurn[],
    listParkedStreams: async (limit) => ({
      count: current().get('SELECT count(*) AS count FROM parked_streams')?.['count'] as number,
      streams: current().all(
        'SELECT * FROM parked_streams ORDER BY stream LIMIT ?',
        limit,
      ) as unknown as ParkedStream[],
    }),
    listErasures: async ({ downTo, limit }) =>
      erasures.list('WHERE position >= ? ORDER BY position DESC LIMIT ?', downTo ?? '', limit),
    generation: () => current().generation,
    untilShown: follower.untilShown,
    close: async () => follower.close(),
  };
}
