import { Pool } from 'pg';
import type { SharedCounts } from '../../shared/ports/rateLimiter.ts';
import { connectionOptions } from './connection.ts';

/** Counts older than a second are useless. */
const STATEMENT_MS = 1_000;
/** Few connections suffice, because no request waits for an answer. */
const CONNECTIONS = 2;
const CLEAN_UP_EVERY_MS = 5 * 60_000;

const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/**
 * A count that ends later than a concurrent statement may have dated it comes from a time before the
 * database's clock was set back.
 */
const IS_CURRENT = `counted.expire BETWEEN excluded.expire - 999 AND excluded.expire + ${STATEMENT_MS}`;
const ADD = `
  INSERT INTO turnlog.rate_limits AS counted (key, points, expire) VALUES ($1, $2, ${NOW} + 1000)
  ON CONFLICT (key) DO UPDATE SET
    points = CASE WHEN ${IS_CURRENT} THEN counted.points ELSE 0 END + excluded.points,
    expire = CASE WHEN ${IS_CURRENT} THEN counted.expire ELSE excluded.expire END
  RETURNING points, expire - ${NOW} AS ms_left`;

const CLEAN_UP = `DELETE FROM turnlog.rate_limits WHERE expire < ${NOW} - ${CLEAN_UP_EVERY_MS}`;

/**
 * Counts in the table `turnlog.rate_limits` on dedicated connections, by the database's clock,
 * because those of processes differ. Opens without waiting for the server. Calls reject with pg's
 * errors.
 */
export function openRateLimits(databaseUrl: string): SharedCounts & { close: () => Promise<void> } {
  const pool = new Pool({
    ...connectionOptions(databaseUrl, { name: 'turnlog rate limits', statementMs: STATEMENT_MS }),
    max: CONNECTIONS,
    allowExitOnIdle: true,
  });
  pool.on('error', () => undefined);
  let cleanUpAt = 0;
  return {
    async add(keyId, requests) {
      const { rows } = await pool.query({ name: 'add', text: ADD, values: [keyId, requests] });
      if (performance.now() > cleanUpAt) {
        cleanUpAt = performance.now() + CLEAN_UP_EVERY_MS;
        void pool.query(CLEAN_UP).catch(() => undefined);
      }
      return { requests: Number(rows[0].points), msLeft: Number(rows[0].ms_left) };
    },
    close: async (): Promise<void> => {
      if (!pool.ending) await pool.end();
    },
  };
}
