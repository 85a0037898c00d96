import { DatabaseError } from 'pg';
import { isTurnlogError, storeUnavailable, type TurnlogError } from '../../shared/errors.ts';

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

export const databaseUnavailable = (cause: unknown): TurnlogError =>
  storeUnavailable("PostgreSQL can't be reached or does not answer.", cause);

/**
 * Errors: `store_unavailable`, whatever the driver or the server threw; TurnlogErrors as they are.
 */
export async function guarded<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw isTurnlogError(error) ? error : databaseUnavailable(error);
  }
}
