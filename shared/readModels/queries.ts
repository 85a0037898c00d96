import { createAccountQueries } from '../accounts/sqlQueries.ts';
import { createAgentQueries } from '../agents/sqlQueries.ts';
import { createErasureQueries } from '../erasure/sqlQueries.ts';
import type { ParkedStream, ReadModelQueries } from '../ports/readModels.ts';
import { createReplayQueries } from '../replays/sqlQueries.ts';
import { createIntegrityQueries } from './integrity/sqlQueries.ts';
import { createIndexQueries } from '../search/sqlQueries.ts';
import { createSessionQueries } from '../sessions/sqlQueries.ts';
import { createStorageQueries } from '../storage/sqlQueries.ts';
import { createUsageQueries } from '../usage/sqlQueries.ts';
import { createWebhookQueries } from '../webhooks/sqlQueries.ts';
import type { SqlDatabase } from './sqlDatabase.ts';

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
