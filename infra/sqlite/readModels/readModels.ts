import type { OpenTurn, ParkedStream, ReadModels } from '../../../shared/ports/readModels.ts';
import type { IndexProgress } from '../../../shared/search/turnIndex.ts';
import type { ProgressSource } from '../../../shared/projections/progress.ts';
import { createFollower } from './follower.ts';
import { listedSessions } from './listedSessions.ts';
import { noteDamage } from './noteDamage.ts';
import { replayReads } from './replayReads.ts';
import { rowReader } from './rowReader.ts';
import { COUNT_UNINDEXED, INDEX_PROGRESS, searchSessions } from './searchSessions.ts';
import { usageQueries } from './usage.ts';
import { HOLDS_ERASED } from './wordIndex.ts';

/** An erased account has none any more. */
const HAS_KEYS = 'SELECT 1 FROM api_keys UNION ALL SELECT 1 FROM accounts WHERE erased LIMIT 1';

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
}): ReadModels & {
  generation: () => number;
  holdsErased: () => Promise<boolean>;
  /** One sentence where a search has found the index of words of this generation damaged. */
  damagedWords: () => string | undefined;
} {
  const follower = createFollower(folder, progress);
  const { current } = follower;
  const damage = noteDamage(current);
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
        `agents WHERE account_id = ? AND NOT ${page.deleted ? 'erased' : 'deleted'} AND agent_id > ? ORDER BY agent_id`,
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
    listSessions: async (accountId, { words, ...page }, signal) =>
      words
        ? damage.noted(() =>
            searchSessions(
              () => {
                signal?.throwIfAborted();
                return current();
              },
              accountId,
              { ...page, words },
            ),
          )
        : sessions.page(page, ...listedSessions(accountId, page)),
    indexProgress: async () => {
      const { get, generation } = current();
      return {
        ...(get(INDEX_PROGRESS) as unknown as Omit<IndexProgress, 'generation'>),
        generation,
      };
    },
    /** Whether words of erased turns, which nobody finds any more, still stand in the index. */
    holdsErased: async () => current().get(HOLDS_ERASED)!['holds'] === 1,
    countUnindexed: async () => Number(current().get(COUNT_UNINDEXED)!['waiting']),
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
              'turns WHERE session_id = ? AND turn > ? ORDER BY turn',
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
        "sessions WHERE replay_of = ? AND status <> 'erased' AND session_id > ? ORDER BY session_id",
        sessionId,
        page.after ?? '',
      ),
    findWebhook: async (webhookId) => webhooks.find('WHERE webhook_id = ?', webhookId),
    listWebhooks: async (accountId, page) =>
      webhooks.page(
        page,
        `webhooks WHERE account_id = ? AND NOT ${page.deleted ? 'erased' : 'deleted'} AND webhook_id > ? ORDER BY webhook_id`,
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
    damagedWords: damage.damaged,
    generation: () => current().generation,
    untilShown: follower.untilShown,
    close: async () => follower.close(),
  };
}
