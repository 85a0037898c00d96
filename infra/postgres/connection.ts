import { Socket } from 'node:net';
import { Client, types, type ClientBase, type ClientConfig } from 'pg';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';
import { guardProtocol } from './protocolGuard.ts';

guardProtocol();

const BIGINT = 20;
/** How long a client waits for a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 2000;
const END_TIMEOUT_MS = 500;

/**
 * Parses bigint as a number; pg would return text. Every stored number came from JSON, so it is a
 * JavaScript number.
 */
const typeParsers = {
  getTypeParser: ((oid: number, format: 'text') =>
    oid === BIGINT
      ? Number
      : (types.getTypeParser(oid, format) as unknown)) as typeof types.getTypeParser,
};

interface Purpose {
  /** Shown to operators in pg_stat_activity. */
  name:
    | 'turnlog projector'
    | 'turnlog rebuild'
    | 'turnlog verify'
    | 'turnlog prover'
    | 'turnlog tiles'
    | 'turnlog retention'
    | 'turnlog replays'
    | 'turnlog webhooks'
    | 'turnlog listener'
    | 'turnlog broadcast'
    | 'turnlog queries'
    | 'turnlog instances'
    | 'turnlog rate limits'
    | 'turnlog keys'
    | 'turnlog self-test'
    | 'turnlog vacuum'
    | 'turnlog migration';
  /**
   * The server cancels a statement that takes longer, in milliseconds. The client gives up a second
   * later, in case the server can't be reached.
   */
  statementMs: number;
}

/** The options of every connection. */
export const connectionOptions = (
  databaseUrl: string,
  { name, statementMs }: Purpose,
): ClientConfig => ({
  connectionString: databaseUrl,
  application_name: name,
  connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  statement_timeout: statementMs,
  query_timeout: statementMs + 1000,
  keepAlive: true,
  keepAliveInitialDelayMillis: 1000,
  types: typeParsers,
});

export interface PostgresConnection {
  client: Client;
  /** Aborts when the connection breaks or is closed. */
  ended: AbortSignal;
  /** Ends the connection, forcibly if the server does not answer. */
  close(): Promise<void>;
}

/** Opens one connection. Throws pg's errors. */
export async function connectPostgres(
  databaseUrl: string,
  purpose: Purpose,
): Promise<PostgresConnection> {
  const socket = new Socket();
  const client = new Client({ ...connectionOptions(databaseUrl, purpose), stream: () => socket });
  const ended = new AbortController();
  // Without a listener, a broken connection would end the process.
  client.on('error', () => ended.abort());
  client.on('end', () => ended.abort());
  const close = async (): Promise<void> => {
    const ending = client.end().catch(() => undefined);
    await resolvesWithin(ending, END_TIMEOUT_MS);
    socket.destroy();
    ended.abort();
  };
  try {
    await client.connect();
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return { client, ended: ended.signal, close };
}

/**
 * Makes the commits of this session survive a crash of the server, whatever the database's default
 * is: an acknowledged commit must not be lost. A stricter level than `on` is kept. Throws pg's
 * errors.
 */
export async function commitDurably(client: ClientBase): Promise<void> {
  await client.query(
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
  );
}

/**
 * Runs the work in a transaction. Throws the errors of pg and of the work. Nothing was committed
 * then, unless the answer to COMMIT was lost.
 */
export async function runInTransaction<Result>(
  client: ClientBase,
  work: () => Promise<Result>,
): Promise<Result> {
  await client.query('BEGIN');
  try {
    const result = await work();
    await client.query('COMMIT');
    return result;
  } catch (error) {
    // Fails when the connection is lost. The server then rolls back by itself.
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}
