import { Pool, type QueryConfig } from 'pg';
import { connectionOptions } from './connection.ts';

/** Counts older than a second are useless. */
const STATEMENT_MS = 1_000;
/** Few connections suffice, because no request waits for an answer. */
const CONNECTIONS = 2;

/**
 * Queries the table `turnlog.rate_limits` on dedicated connections. Opens without waiting for the
 * server. Queries reject with pg's errors.
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
