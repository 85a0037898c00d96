import { Pool, type QueryResultRow } from 'pg';
import { storeUnavailable } from '../../../shared/errors.ts';
import { connectionOptions } from '../connection.ts';
import { guarded } from '../failures.ts';
import { createFollower, readState } from './follower.ts';

/** The server ends a query that takes longer, in milliseconds: whoever asked has gone by then. */
const STATEMENT_MS = 5000;
const IDLE_MS = 30_000;

/** Runs queries on a pool of connections, once the live copy is complete. */
export function createReader(databaseUrl: string, poolSize: number) {
  const pool = new Pool({ ...connectionOptions(databaseUrl, { statementMs: STATEMENT_MS }), max: poolSize, idleTimeoutMillis: IDLE_MS, allowExitOnIdle: true });
  // Without a listener an idle connection that breaks would end the process; the pool has already let go of it.
  pool.on('error', () => undefined);
  const follower = createFollower(databaseUrl);
  let looking: Promise<void> | undefined;
  let closing: Promise<void> | undefined;

  /** Asks the server itself before a query is refused; all who are to be refused at that time share one question. */
  async function untilComplete(): Promise<void> {
    if (follower.state()?.complete) return;
    looking ??= readState(pool.query.bind(pool) as typeof pool.query)
      .then(follower.know)
      .finally(() => (looking = undefined));
    await looking;
    if (!follower.state()?.complete) throw storeUnavailable('The read models are being built.');
  }

  return {
    /** Errors: `store_unavailable`. */
    rows: <Row extends QueryResultRow>(sql: string, parameters: readonly unknown[] = []): Promise<Row[]> =>
      guarded(async () => {
        await untilComplete();
        return (await pool.query<Row>(sql, [...parameters])).rows;
      }),
    waitUntilPassed: follower.waitUntilPassed,
    close: (): Promise<void> => (closing ??= Promise.all([follower.close(), pool.end()]).then(() => undefined)),
  };
}
