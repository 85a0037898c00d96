import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { connectPostgres } from './connection.ts';
import { withDatabaseErrors, isMissingRight, missingRightError } from './failures.ts';
import { hasTables } from './migrate.ts';

const STATEMENT_MS = 10_000;

/**
 * Checks that the database has Turnlog's tables; creates none. Throws `configuration_invalid` if
 * there are none or the role may not check, and `store_unavailable`.
 */
export const requireTables = (databaseUrl: string): Promise<void> =>
  withDatabaseErrors(async () => {
    const purpose = { name: 'turnlog self-test', statementMs: STATEMENT_MS } as const;
    await using opened = new AsyncDisposableStack();
    const connection = await connectPostgres(databaseUrl, purpose);
    const { client } = opened.adopt(connection, ({ close }) => close());
    const tablesExist = await hasTables(client).catch((error: unknown) => {
      throw isMissingRight(error) ? missingRightError((error as Error).message, error) : error;
    });
    if (tablesExist) return;
    throw new TurnlogError(
      'configuration_invalid',
      'The database that DATABASE_URL names has no tables of Turnlog. Name the one that the service uses; a first start of the service makes them, and so does `database migrate`.',
    );
  });
