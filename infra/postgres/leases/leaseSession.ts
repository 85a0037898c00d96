import { addAbortListener } from 'node:events';
import type { Client, QueryConfig } from 'pg';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import { commitDurably, connectPostgres, type PostgresConnection } from '../connection.ts';
import { databaseUnavailableError, withDatabaseErrors, sqlState } from '../failures.ts';
import { migrate } from '../migrate.ts';

/**
 * The server ends the session of a writer that it hears nothing from for this long: of a stopped
 * process or a vanished host, whose connection stays open as far as TCP can tell. Its locks are
 * free then.
 */
const SILENCE_LIMIT_MS = 2500;
const HEARTBEAT_MS = 700;
const STATEMENT_MS = 30_000;
/** How long the work in hand may take at the end: beyond that the server rolls it back. */
const CLOSE_LIMIT_MS = 3_000;
/** How often a writer that stands by asks for the lock. */
const LOCK_POLL_MS = 250;
const PAUSES = { firstMs: 100, longestMs: 2000 };

/** A session that holds an advisory lock while it lives, and does the work under it. */
export interface LeaseSession {
  /** Aborted when the session, and so the lock, is lost or was closed. */
  lost: AbortSignal;
  /**
   * Runs work after work, one at a time. Errors: `store_unavailable` once the session is lost; else
   * what the work throws.
   */
  run<Result>(work: (client: Client) => Promise<Result>): Promise<Result>;
  /** Lets the work in hand finish, for 3 s at the most; cut off then, it has not happened. */
  close(): Promise<void>;
}

function createLeaseSession({ client, ended, close }: PostgresConnection): LeaseSession {
  let last: Promise<unknown> = Promise.resolve();

  function run<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
    const result = last.then(async () => {
      if (ended.aborted)
        throw databaseUnavailableError(new Error('the session of this writer has ended'));
      try {
        return await work(client);
      } catch (error) {
        // Whether the server still works on what was asked last can't be known, so nothing more is
        // asked on this connection.
        if (sqlState(error) === undefined && !isTurnlogError(error)) void close();
        throw error;
      }
    });
    last = result.catch(() => undefined);
    return result;
  }

  // Not heard either within that time, the server has ended the session, whether or not the network
  // says so.
  const beat: QueryConfig & { query_timeout: number } = {
    text: 'SELECT',
    query_timeout: SILENCE_LIMIT_MS,
  };
  const heartbeat = setInterval(
    () => void run((own) => own.query(beat)).catch(() => undefined),
    HEARTBEAT_MS,
  ).unref();
  addAbortListener(ended, () => clearInterval(heartbeat));
  return {
    lost: ended,
    run,
    async close() {
      clearInterval(heartbeat);
      await resolvesWithin(last, CLOSE_LIMIT_MS);
      await close();
    },
  };
}

/** A server that is not heard within that time has ended the session. */
async function tryLock(client: Client, lock: string): Promise<boolean> {
  const question: QueryConfig & { query_timeout: number } = {
    text: `SELECT pg_try_advisory_lock(${lock}) AS held`,
    query_timeout: SILENCE_LIMIT_MS,
  };
  const { rows } = await client.query<{ held: boolean }>(question);
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
  /** Of locks.ts. */
  lock: string;
}

/** Connects, migrates, and asks for the lock until `goOn` is false. Errors: what pg throws. */
async function tryAcquireLease(
  { databaseUrl, name, lock }: LeaseRequest,
  goOn: () => Promise<boolean>,
): Promise<LeaseSession | undefined> {
  const connection = await connectPostgres(databaseUrl, { name, statementMs: STATEMENT_MS });
  const { client } = connection;
  try {
    // The third limit is for a session that is being answered, which is not idle for as long as
    // nobody takes the answer.
    await client.query(
      ['idle_session_timeout', 'idle_in_transaction_session_timeout', 'tcp_user_timeout']
        .map((limit) => `SET ${limit} = ${SILENCE_LIMIT_MS}`)
        .join('; '),
    );
    await commitDurably(client);
    await migrate(client);
    do if (await tryLock(client, lock)) return createLeaseSession(connection);
    while (await goOn());
    await connection.close();
    return undefined;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** A session with the lock, or undefined when another has it. Errors: `store_unavailable`. */
export const tryLeaseSession = (wanted: LeaseRequest): Promise<LeaseSession | undefined> =>
  withDatabaseErrors(() => tryAcquireLease(wanted, async () => false));

interface StandbyRequest extends LeaseRequest {
  signal: AbortSignal;
  /** Called with every failure, after which it goes on after a pause. */
  onFailure: (error: unknown, retryInMs: number) => void;
}

/** Waits until lock and server are there, without a limit. Undefined when the signal aborted. */
export async function awaitLeaseSession({
  signal,
  onFailure,
  ...wanted
}: StandbyRequest): Promise<LeaseSession | undefined> {
  const pauses = createBackoff(PAUSES);
  while (!signal.aborted) {
    try {
      return await tryAcquireLease(wanted, async () => {
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
