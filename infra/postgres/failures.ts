import { DatabaseError } from 'pg';
import {
  isTurnlogError,
  storeUnavailableError,
  TurnlogError,
} from '../../shared/lib/errors/turnlogError.ts';

/**
 * The SQLSTATE of what the server refused; undefined for failures of the connection. Source:
 * PostgreSQL documentation, appendix A.
 */
export const sqlState = (error: unknown): string | undefined =>
  error instanceof DatabaseError ? error.code : undefined;

/** True when the row is to blame, not the database. */
export const isRowFailure = (error: unknown): boolean =>
  /^(?:22|23|54000)/.test(sqlState(error) ?? '');

/**
 * True when a schema or table is not there: before the first projector has started, or has caught
 * up.
 */
export const isMissing = (error: unknown): boolean =>
  ['3F000', '42P01'].includes(sqlState(error) ?? '');

/** True when others kept a lock for longer than was to be waited. */
export const isLockedByOthers = (error: unknown): boolean => sqlState(error) === '55P03';

/** True when the role may not do what it was asked for. */
export const isMissingRight = (error: unknown): boolean => sqlState(error) === '42501';

/** `configuration_invalid`: what the role of DATABASE_URL lacks, and who mends that. */
export const missingRightError = (what: string, cause?: unknown): TurnlogError =>
  new TurnlogError(
    'configuration_invalid',
    `The role of DATABASE_URL lacks rights in PostgreSQL: ${what}. Let the role that owns the database run: npm run cli -- database migrate --grant <role>`,
    { cause },
  );

export const databaseUnavailableError = (cause: unknown): TurnlogError =>
  storeUnavailableError("PostgreSQL can't be reached or does not answer.", cause);

/**
 * Errors: `store_unavailable`, whatever the driver or the server threw; TurnlogErrors as they are.
 */
export async function withDatabaseErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw isTurnlogError(error) ? error : databaseUnavailableError(error);
  }
}
