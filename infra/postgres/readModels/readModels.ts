import type {
  OpenTurn,
  ParkedStream,
  ProjectorBeat,
  ReadModels,
} from '../../../shared/ports/readModels.ts';
import type { IndexProgress } from '../../../shared/search/turnIndex.ts';
import type { Checkpoint, Position } from '../../../shared/ports/eventStore.ts';
import type { SessionRow, TurnRow } from '../../../shared/readModels/tables.ts';
import { lockIsHeldBy } from '../leases/locks.ts';
import { CHECKPOINT, keyOf, ROW } from './generations.ts';
import { LAST_BEAT, toBeat, type BeatRow } from './projectorBeat.ts';
import {
  COUNT_UNINDEXED,
  INDEX_PROGRESS,
  listAgents,
  listReplaysOf,
  listSessions,
  listTurns,
  listWebhooks,
} from './listings.ts';
import { toPage } from './pages.ts';
import { createReader } from './reader.ts';
import { replayReads } from './replayReads.ts';
import { columns, pageReader, rowReader } from './rowReader.ts';
import { usageQueries } from './usage.ts';
import { liveSchema, VERSION } from './version.ts';

const LIVE = liveSchema(VERSION);
const ROW_KEY = keyOf({ version: VERSION, stage: 'live' });

interface Options {
  databaseUrl: string;
  /** The most connections for queries; one more follows the projector. */
  poolSize?: number;
}

export interface PostgresReadModels extends ReadModels {
  /**
   * The checkpoint for which the read models are being rebuilt; undefined where they can be
   * trusted. Errors: `store_unavailable`.
   */
  refusedCheckpoint(): Promise<Position | undefined>;
  /**
   * The last event that the live ones show, and so the log that they were built from; undefined
   * where there are none. Errors: `store_unavailable`.
   */
  checkpoint(): Promise<Checkpoint | undefined>;
  /** Why the projector does not follow the log, as it told last; undefined while it does. */
  logChanged(): string | undefined;
  /**
   * What the active projector has told last; undefined where none ever has. Errors:
   * `store_unavailable`.
   */
  projectorBeat(): Promise<ProjectorBeat | undefined>;
  /** Whether a projector of another version is at work. Errors: `store_unavailable`. */
  otherVersionWritten(): Promise<boolean>;
}

/**
 * The queries over the live read models in PostgreSQL. Opens without waiting for the server, which
 * may be away: queries reject with `store_unavailable` then, and until a projector has once caught
 * up.
 */
export function openPostgresReadModels({
  databaseUrl,
  poolSize = 10,
}: Options): PostgresReadModels {
  const reader = createReader(databaseUrl, poolSize);
  const accounts = rowReader(reader, 'accounts');
  const apiKeys = rowReader(reader, 'api_keys');
  const agents = rowReader(reader, 'agents');
  const sessions = rowReader(reader, 'sessions');
  const webhooks = rowReader(reader, 'webhooks');
  const erasures = rowReader(reader, 'erasures');

  const page = pageReader(reader);

  return {
    listAccounts: () => accounts.list('WHERE NOT erased ORDER BY account_id'),
    findAccount: (accountId) => accounts.find('WHERE account_id = $1', accountId),
    findApiKey: (keyId) => apiKeys.find('WHERE key_id = $1', keyId),
    findApiKeyByHash: (hash) => apiKeys.find('WHERE hash = $1 ORDER BY key_id LIMIT 1', hash),
    listApiKeys: (accountId) => apiKeys.list('WHERE account_id = $1 ORDER BY key_id', accountId),
    hasApiKeys: async () =>
      // An erased account has none any more.
      (
        await reader.rows(
          `SELECT 1 FROM ${LIVE}.api_keys UNION ALL SELECT 1 FROM ${LIVE}.accounts WHERE erased LIMIT 1`,
        )
      ).length > 0,
    findAgent: (agentId) => agents.find('WHERE agent_id = $1 AND (erased OR NOT deleted)', agentId),
    listAgents: (accountId, bounds) => page('agents', listAgents(accountId, bounds)),
    agentListVersion: async (accountId) => {
      const [found] = await reader.rows<{ version: string }>(
        `SELECT generation || '.' || coalesce((
           SELECT agent_id || '.' || revision || '.' || updated_at FROM ${LIVE}.agents WHERE account_id = $3 ORDER BY position DESC LIMIT 1
         ), '') AS version
         FROM ${ROW}`,
        [...ROW_KEY, accountId],
      );
      return found?.version ?? '';
    },
    findSession: (sessionId) => sessions.find('WHERE session_id = $1', sessionId),
    listSessions: async (accountId, bounds, signal) => {
      signal?.throwIfAborted();
      return page('sessions', listSessions(accountId, bounds));
    },
    indexProgress: async () => (await reader.rows<IndexProgress>(INDEX_PROGRESS, ROW_KEY))[0]!,
    countUnindexed: async () =>
      (await reader.rows<{ waiting: number }>(COUNT_UNINDEXED))[0]!.waiting,
    // In one statement, which sees one moment. The columns have no type that JSON would change.
    findTranscript: async (accountId, sessionId, bounds) => {
      const { sql, parameters } = listTurns(sessionId, bounds);
      const [found] = await reader.rows<{
        session: SessionRow;
        turns: (TurnRow & { read: number })[];
      }>(
        `SELECT to_json(session) AS session,
           (SELECT coalesce(json_agg(page), '[]') FROM (${sql}) AS page) AS turns
         FROM (SELECT ${columns('sessions')} FROM ${LIVE}.sessions WHERE session_id = $1 AND account_id = $${parameters.length + 1}) AS session`,
        [...parameters, accountId],
      );
      return found && { session: found.session, turns: toPage(found.turns) };
    },
    ...usageQueries(reader),
    listReplaysOf: (sessionId, bounds) => page('sessions', listReplaysOf(sessionId, bounds)),
    findWebhook: (webhookId) => webhooks.find('WHERE webhook_id = $1', webhookId),
    listWebhooks: (accountId, bounds) => page('webhooks', listWebhooks(accountId, bounds)),
    listEnabledWebhooks: (limit) =>
      webhooks.list('WHERE disabled IS NULL AND NOT deleted ORDER BY webhook_id LIMIT $1', limit),
    ...replayReads(reader),
    listOpenTurns: () =>
      reader.rows<OpenTurn>(
        `SELECT turns.session_id, account_id, turn, owner, deadline FROM ${LIVE}.turns JOIN ${LIVE}.sessions USING (session_id) WHERE turns.status = 'running' ORDER BY turns.session_id, turn`,
      ),
    listParkedStreams: async (limit) => {
      const found = await reader.rows<ParkedStream & { count: number }>(
        `SELECT stream, revision, event_type, error, (SELECT count(*) FROM ${LIVE}.parked_streams) AS count
         FROM ${LIVE}.parked_streams ORDER BY stream LIMIT $1`,
        [limit],
      );
      const streams = found.map(({ count: _count, ...stream }) => stream);
      return { count: found[0]?.count ?? 0, streams };
    },
    refusedCheckpoint: async () => {
      const [found] = await reader.rows<{ refused: Position | null }>(
        `SELECT refused FROM ${ROW}`,
        ROW_KEY,
      );
      return found?.refused ?? undefined;
    },
    checkpoint: async () => (await reader.rows<Checkpoint>(CHECKPOINT, ROW_KEY))[0],
    logChanged: reader.logChanged,
    projectorBeat: async () => {
      const [found] = await reader.rows<BeatRow>(LAST_BEAT, [VERSION.number]);
      return found && toBeat(found);
    },
    otherVersionWritten: async () =>
      (
        await reader.rows(`SELECT FROM ${lockIsHeldBy('writer')} WHERE version <> $1`, [
          VERSION.number,
        ])
      ).length > 0,
    listErasures: ({ downTo, limit }) =>
      erasures.list('WHERE position >= $1 ORDER BY position DESC LIMIT $2', downTo ?? '', limit),
    untilShown: reader.untilShown,
    close: reader.close,
  };
}
