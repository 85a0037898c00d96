import { Pool, type QueryResultRow } from 'pg';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import { connectionOptions } from '../connection.ts';
import { withDatabaseErrors, isMissing } from '../failures.ts';
import { createFollower } from './follower.ts';

/** The server ends a query that takes longer, in milliseconds: whoever asked has gone by then. */
const STATEMENT_MS = 5000;
const IDLE_MS = 30_000;

/** Runs queries over the live generation on a pool of connections. */
export function createReader(databaseUrl: string, poolSize: number) {
  const pool = new Pool({
    ...connectionOptions(databaseUrl, { name: 'turnlog queries', statementMs: STATEMENT_MS }),
    max: poolSize,
    idleTimeoutMillis: IDLE_MS,
    allowExitOnIdle: true,
  });
  // Without a listener an idle connection that breaks would end the process; the pool has already
  // let go of it.
  pool.on('error', () => undefined);
  const follower = createFollower(databaseUrl);
  let closing: Promise<void> | undefined;

  async function query<Row extends QueryResultRow>(
    sql: string,
    parameters: readonly unknown[],
  ): Promise<Row[]> {
    // No text here holds a NUL, and the server refuses to look for one.
    if (parameters.some((parameter) => typeof parameter === 'string' && parameter.includes('\0')))
      return [];
    try {
      return (await pool.query<Row>(sql, [...parameters])).rows;
    } catch (error) {
      throw isMissing(error)
        ? storeUnavailableError('The read models are being built.', error)
        : error;
    }
  }

  return {
    /** Errors: `store_unavailable`, also while there is no live generation. */
    rows: <Row extends QueryResultRow>(
      sql: string,
      parameters: readonly unknown[] = [],
    ): Promise<Row[]> => withDatabaseErrors(() => query<Row>(sql, parameters)),
    logChanged: follower.logChanged,
    untilShown: follower.untilShown,
    close: (): Promise<void> =>
      (closing ??= Promise.all([follower.close(), pool.end()]).then(() => undefined)),
  };
}
