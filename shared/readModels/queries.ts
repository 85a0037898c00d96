import { createAccountQueries, type AccountQueries } from '../accounts/sqlQueries.ts';
import { createAgentQueries, type AgentQueries } from '../agents/sqlQueries.ts';
import { createErasureQueries, type ErasureQueries } from '../erasure/sqlQueries.ts';
import { createReplayQueries, type ReplayQueries } from '../replays/sqlQueries.ts';
import { createIntegrityQueries, type IntegrityQueries } from './integrity/sqlQueries.ts';
import { createIndexQueries, type IndexQueries } from '../search/sqlQueries.ts';
import { createSessionQueries, type SessionQueries } from '../sessions/sqlQueries.ts';
import { createStorageQueries, type StorageQueries } from '../storage/sqlQueries.ts';
import { createUsageQueries, type UsageQueries } from '../usage/sqlQueries.ts';
import { createWebhookQueries, type WebhookQueries } from '../webhooks/sqlQueries.ts';
import type { SqlDatabase } from './sqlDatabase.ts';
import type { RowOf } from './table.ts';
import type { PARKED_STREAMS } from './tables.ts';

/** A stream with an event that could not be applied; later events are skipped until a rebuild. */
export type ParkedStream = RowOf<typeof PARKED_STREAMS>;

export interface ParkedStreams {
  count: number;
  streams: ParkedStream[];
}

/**
 * All queries reject with `store_unavailable` while the read models can't be reached or have never
 * caught up.
 */
export interface ReadModelQueries
  extends
    AccountQueries,
    AgentQueries,
    SessionQueries,
    IndexQueries,
    UsageQueries,
    StorageQueries,
    WebhookQueries,
    ReplayQueries,
    ErasureQueries,
    IntegrityQueries {
  /** The first parked streams by name, and how many there are. The limit is ≥ 1. */
  listParkedStreams(limit: number): Promise<ParkedStreams>;
}

/** All queries of the read models, over any SQL database. */
export function createReadModelQueries(database: SqlDatabase): ReadModelQueries {
  const parked = database.query<ParkedStream & { count: number }>(
    'SELECT stream, revision, event_type, error, (SELECT count(*) FROM {parked_streams}) AS count FROM {parked_streams} ORDER BY stream LIMIT ?',
  );
  return {
    ...createAccountQueries(database),
    ...createAgentQueries(database),
    ...createSessionQueries(database),
    ...createIndexQueries(database),
    ...createUsageQueries(database),
    ...createStorageQueries(database),
    ...createWebhookQueries(database),
    ...createReplayQueries(database),
    ...createErasureQueries(database),
    ...createIntegrityQueries(database),
    async listParkedStreams(limit) {
      const rows = await parked(limit);
      const streams = rows.map(({ count: _count, ...stream }) => stream);
      return { count: rows[0]?.count ?? 0, streams };
    },
  };
}
