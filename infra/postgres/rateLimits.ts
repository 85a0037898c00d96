import { Pool, type QueryConfig } from 'pg';
import { connectionOptions } from './connection.ts';

/** Numbers older than a second are of no use. */
const STATEMENT_MS = 1_000;
/** No request waits for an answer. */
const CONNECTIONS = 2;

/**
 * Queries of the table `turnlog.rate_limits`, on connections of their own: opens without waiting
 * for the server. Errors: what pg throws.
 */
export function openRateLimits(databaseUrl: string) {
  const pool = new Pool({
    ...connectionOptions(databaseUrl, { name: 'turnlog rate limits', statementMs: STATEMENT_MS }),
    max: CONNECTIONS,
    allowExitOnIdle: true,
  });
  pool.on('error', () => undefined);
  return {
    query: (query: object) => pool.query(query as QueryConfig),
    close: async (): Promise<void> => {
      if (!pool.ending) await pool.end();
    },
  };
}
