import { escapeIdentifier, type Client } from 'pg';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { connectPostgres, runInTransaction } from './connection.ts';
import { withDatabaseErrors, sqlState } from './failures.ts';
import { migrate } from './migrate.ts';
import { recordVersion } from './readModels/generations.ts';
import { VERSION } from './readModels/schema.ts';

const STATEMENT_MS = 600_000;
const UNKNOWN_ROLE = '42704';

/** The roles with earlier grants, which need grants on new tables as well. */
async function grantedBefore(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ role: string }>(
    `SELECT DISTINCT pg_get_userbyid(grantee) AS role FROM pg_namespace, aclexplode(nspacl)
     WHERE nspname = 'turnlog' AND privilege_type = 'USAGE' AND grantee NOT IN (0, nspowner)`,
  );
  return rows.map(({ role }) => role);
}

/**
 * Services read and write all tables, except those that record the owner's migrations, which they
 * only read.
 */
const grants = (role: string): string =>
  `GRANT USAGE ON SCHEMA turnlog TO ${role};
   GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA turnlog TO ${role};
   REVOKE INSERT, UPDATE, DELETE ON turnlog.migrations, turnlog.versions FROM ${role};
   GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA turnlog TO ${role}`;

const GENERATIONS = `SELECT turnlog.share_generation(nspname) FROM pg_namespace WHERE nspname ~ '^turnlog_v[0-9]+(_|$)'`;

/**
 * Migrates the database as its owner, and grants the rights of services to `roles` and to the roles
 * with earlier grants, so that services need no right to create anything. Resolves with all of
 * these roles. Throws `configuration_invalid` for an unknown role or if the current role is not the
 * owner, and `store_unavailable`.
 */
export function migrateForServices(databaseUrl: string, roles: readonly string[]) {
  return withDatabaseErrors(async (): Promise<string[]> => {
    await using opened = new AsyncDisposableStack();
    const purpose = { name: 'turnlog migration', statementMs: STATEMENT_MS } as const;
    const connection = await connectPostgres(databaseUrl, purpose);
    const { client } = opened.adopt(connection, ({ close }) => close());
    await migrate(client);
    const services = [...new Set([...(await grantedBefore(client)), ...roles])].toSorted();
    try {
      await runInTransaction(client, async () => {
        await recordVersion(client, VERSION);
        for (const role of services) await client.query(grants(escapeIdentifier(role)));
        await client.query(GENERATIONS);
      });
    } catch (error) {
      if (sqlState(error) === undefined) throw error;
      const advice =
        sqlState(error) === UNKNOWN_ROLE
          ? 'Make it first, with CREATE ROLE.'
          : 'Run this command with the role that owns the database.';
      throw new TurnlogError(
        'configuration_invalid',
        `PostgreSQL refuses: ${(error as Error).message}. ${advice}`,
        { cause: error },
      );
    }
    return services;
  });
}
