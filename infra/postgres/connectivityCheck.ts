import type { Client } from 'pg';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { connectPostgres } from './connection.ts';
import { withDatabaseErrors, isMissingRight, missingRightError, sqlState } from './failures.ts';
import { migrate } from './migrate.ts';
import { VERSION } from './readModels/schema.ts';

const STATEMENT_MS = 10_000;
/**
 * The first version with `idle_session_timeout`, without which a vanished writer keeps its lock.
 */
const MIN_SERVER_VERSION = 14;
/**
 * The number of attempts to detect a pooler, because other clients may use it at the same moment.
 */
const SESSION_CHECKS = 5;

const configurationError = (message: string, cause?: unknown): TurnlogError =>
  new TurnlogError('configuration_invalid', message, { cause });

/**
 * Throws `configuration_invalid` if the server, identified by its `server_version_num`, is too old.
 */
export function requireVersion(versionNumber: number): void {
  const version = Math.floor(versionNumber / 10_000);
  if (version >= MIN_SERVER_VERSION) return;
  throw configurationError(
    `DATABASE_URL names a PostgreSQL ${version} server: Turnlog needs PostgreSQL ${MIN_SERVER_VERSION} or later.`,
  );
}

async function sessionOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]!.pid;
}

/**
 * True if clients share server sessions: the second client's transaction then gets the session that
 * the first client has used, and the first client continues in another one.
 */
async function shareSessions(first: Client, second: Client): Promise<boolean> {
  for (let attempt = 0; attempt < SESSION_CHECKS; attempt += 1) {
    const firstSession = await sessionOf(first);
    await second.query('BEGIN');
    const shared =
      (await sessionOf(second)) === firstSession || (await sessionOf(first)) !== firstSession;
    await second.query('ROLLBACK');
    if (shared) return true;
  }
  return false;
}

/** Selects a description of each right that services need and the role lacks. */
const MISSING_RIGHTS = `
  SELECT format('%s on %s', needed, pg_class.oid::regclass) AS what
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed
    WHERE relkind = 'r' AND (nspname = 'turnlog' OR nspname ~ $1)
      AND (needed = 'SELECT' OR pg_class.oid NOT IN ('turnlog.migrations'::regclass, 'turnlog.versions'::regclass))
      AND NOT has_table_privilege(pg_class.oid, needed)
  UNION ALL SELECT format('USAGE on schema %s', nspname)
    FROM pg_namespace WHERE nspname ~ $1 AND NOT has_schema_privilege(oid, 'USAGE')
  UNION ALL SELECT format('EXECUTE on %s', oid::regprocedure)
    FROM pg_proc WHERE pronamespace = 'turnlog'::regnamespace AND NOT has_function_privilege(oid, 'EXECUTE')
  UNION ALL SELECT 'INSERT on turnlog.versions, which does not have the version of this release'
    WHERE NOT EXISTS (SELECT FROM turnlog.versions WHERE version = $2) AND NOT has_table_privilege('turnlog.versions', 'INSERT')`;

async function requireRights(client: Client): Promise<void> {
  const { rows } = await client.query<{ what: string }>(MISSING_RIGHTS, [
    `^turnlog_v${VERSION.number}(_|$)`,
    VERSION.number,
  ]);
  if (rows.length > 0) throw missingRightError(rows.map(({ what }) => what).join(', '));
}

async function checkWith(databaseUrl: string): Promise<void> {
  const purpose = { name: 'turnlog self-test', statementMs: STATEMENT_MS } as const;
  await using opened = new AsyncDisposableStack();
  const open = async (): Promise<Client> =>
    opened.adopt(await connectPostgres(databaseUrl, purpose), ({ close }) => close()).client;
  const client = await open();
  const { rows } = await client.query<{ version: string }>(
    "SELECT current_setting('server_version_num') AS version",
  );
  requireVersion(Number(rows[0]!.version));
  if (await shareSessions(client, await open()))
    throw configurationError(
      'DATABASE_URL leads to a pooler in transaction mode: a session of PostgreSQL is not its own there, and with it LISTEN, settings and the locks of projectors are lost. Name the server itself, or a pool in session mode.',
    );
  await migrate(client);
  await requireRights(client);
}

/**
 * Checks that the database supports what services need, and migrates it if the role has the right
 * to. Throws `configuration_invalid`, which states the finding and the remedy (a server that is too
 * old, a pooler that shares sessions, missing rights), and `store_unavailable`.
 */
export const checkConnectivity = (databaseUrl: string): Promise<void> =>
  withDatabaseErrors(async () => {
    try {
      await checkWith(databaseUrl);
    } catch (error) {
      // A protocol violation. PostgreSQL itself accepts all of these requests.
      if (sqlState(error) === '08P01')
        throw configurationError(
          `DATABASE_URL leads to a pooler that refuses what Turnlog asks of a session (${(error as Error).message}). Name the server itself.`,
          error,
        );
      throw isMissingRight(error) ? missingRightError((error as Error).message, error) : error;
    }
  });
