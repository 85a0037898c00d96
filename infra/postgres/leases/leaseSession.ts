import { createSerialQueue } from '../../../shared/lib/concurrency/serialQueue.ts';
import { addAbortListener } from 'node:events';
import type { Client, QueryConfig } from 'pg';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sleep, sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import { commitDurably, connectPostgres, type PostgresConnection } from '../connection.ts';
import { databaseUnavailableError, withDatabaseErrors, sqlState } from '../failures.ts';
import { migrate } from '../migrate.ts';

/**
 * The server ends the session of a writer that is silent for this long, such as a stopped process
 * or a vanished host, whose TCP connection still appears to be open. Its locks are then released.
 */
const SILENCE_LIMIT_MS = 2500;
const HEARTBEAT_MS = 700;
const STATEMENT_MS = 30_000;
/**
 * The time limit of the current work at close, in milliseconds. After that, the server rolls it
 * back.
 */
const CLOSE_LIMIT_MS = 3_000;
/** The interval between attempts to acquire the lock, in milliseconds. */
const LOCK_POLL_MS = 250;
const PAUSES = { firstMs: 100, longestMs: 2000 };

/** A session that holds an advisory lock while it is open, and runs work under that lock. */
export interface LeaseSession {
  /** Aborts when the session, and with it the lock, is lost or closed. */
  lost: AbortSignal;
  /**
   * Runs work serially. Rejects with `store_unavailable` once the session is lost, otherwise with
   * the error of the work.
   */
  run<Result>(work: (client: Client) => Promise<Result>): Promise<Result>;
  /** Lets the current work finish within 3 s. Work that takes longer is rolled back. */
  close(): Promise<void>;
}

function createLeaseSession({ client, ended, close }: PostgresConnection): LeaseSession {
  const queue = createSerialQueue();

  const run = <Result>(work: (client: Client) => Promise<Result>): Promise<Result> =>
    queue.run(async () => {
      if (ended.aborted)
        throw databaseUnavailableError(new Error('the session of this writer has ended'));
      try {
        return await work(client);
      } catch (error) {
        // The server may still be processing the last statement, so this connection is not used any
        // more.
        if (sqlState(error) === undefined && !isTurnlogError(error)) void close();
        throw error;
      }
    });

  // If this query gets no answer in time, the server has ended the session, even if the network
  // does not report that.
  const beat: QueryConfig & { query_timeout: number } = {
    text: 'SELECT',
    query_timeout: SILENCE_LIMIT_MS,
  };
  const heartbeat = setInterval(
    () => void run((sessionClient) => sessionClient.query(beat)).catch(() => undefined),
    HEARTBEAT_MS,
  ).unref();
  addAbortListener(ended, () => clearInterval(heartbeat));
  return {
    lost: ended,
    run,
    async close() {
      clearInterval(heartbeat);
      await resolvesWithin(queue.idle(), CLOSE_LIMIT_MS);
      await close();
    },
  };
}

/** If the server does not answer in time, it has ended the session. */
async function tryLock(client: Client, lock: string): Promise<boolean> {
  const lockQuery: QueryConfig & { query_timeout: number } = {
    text: `SELECT pg_try_advisory_lock(${lock}) AS held`,
    query_timeout: SILENCE_LIMIT_MS,
  };
  const { rows } = await client.query<{ held: boolean }>(lockQuery);
  return rows[0]?.held === true;
}

interface LeaseRequest {
  databaseUrl: string;
  name:
    | 'turnlog projector'
    | 'turnlog rebuild'
    | 'turnlog prover'
    | 'turnlog retention'
    | 'turnlog replays'
    | 'turnlog webhooks';
  /** A lock of locks.ts. */
  lock: string;
}

/**
 * Connects, migrates, and tries to acquire the lock until `shouldContinue` resolves with false.
 * Throws pg's errors.
 */
async function tryAcquireLease(
  { databaseUrl, name, lock }: LeaseRequest,
  shouldContinue: () => Promise<boolean>,
): Promise<LeaseSession | undefined> {
  const connection = await connectPostgres(databaseUrl, { name, statementMs: STATEMENT_MS });
  const { client } = connection;
  try {
    // The third limit ends a session that is sending a response: it does not count as idle while
    // the client does not read.
    await client.query(
      ['idle_session_timeout', 'idle_in_transaction_session_timeout', 'tcp_user_timeout']
        .map((limit) => `SET ${limit} = ${SILENCE_LIMIT_MS}`)
        .join('; '),
    );
    await commitDurably(client);
    await migrate(client);
    do if (await tryLock(client, lock)) return createLeaseSession(connection);
    while (await shouldContinue());
    await connection.close();
    return undefined;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/**
 * Opens a session with the lock; undefined if another session holds it, also after `retries` more
 * attempts. Throws `store_unavailable`.
 */
export function tryLeaseSession(
  request: LeaseRequest,
  retries = 0,
): Promise<LeaseSession | undefined> {
  let retriesLeft = retries;
  return withDatabaseErrors(() =>
    tryAcquireLease(request, async () => {
      if (retriesLeft <= 0) return false;
      retriesLeft -= 1;
      await sleep(LOCK_POLL_MS);
      return true;
    }),
  );
}

/** A wait for a lease, which ends with the signal. */
export interface LeaseWait extends Pick<LeaseRequest, 'databaseUrl'> {
  signal: AbortSignal;
  /** Called for every failure. The next attempt follows after a pause. */
  onFailure: (error: unknown, retryInMs: number) => void;
}

/**
 * Waits for the server and the lock, without a time limit. Resolves with undefined if the signal
 * aborts.
 */
export async function awaitLeaseSession({
  signal,
  onFailure,
  ...request
}: LeaseWait & LeaseRequest): Promise<LeaseSession | undefined> {
  const pauses = createBackoff(PAUSES);
  while (!signal.aborted) {
    try {
      return await tryAcquireLease(request, async () => {
        pauses.reset();
        await sleepUntilAborted(LOCK_POLL_MS, { signal });
        return !signal.aborted;
      });
    } catch (error) {
      const retryInMs = pauses.next();
      onFailure(error, retryInMs);
      await sleepUntilAborted(retryInMs, { signal });
    }
  }
  return undefined;
}
