import { DatabaseError } from 'pg';
import {
  isTurnlogError,
  storeUnavailableError,
  TurnlogError,
} from '../../shared/lib/errors/turnlogError.ts';

/**
 * The SQLSTATE of an error from the server; undefined for connection failures. Source: PostgreSQL
 * documentation, appendix A.
 */
export const sqlState = (error: unknown): string | undefined =>
  error instanceof DatabaseError ? error.code : undefined;

/** True when the row caused the error, not the database. */
export const isRowFailure = (error: unknown): boolean =>
  /^(?:22|23|54000)/.test(sqlState(error) ?? '');

/**
 * True when a schema or table does not exist, as before the first projector has started or caught
 * up.
 */
export const isMissing = (error: unknown): boolean =>
  ['3F000', '42P01'].includes(sqlState(error) ?? '');

/** True when a lock could not be acquired within `lock_timeout`. */
export const isLockedByOthers = (error: unknown): boolean => sqlState(error) === '55P03';

/** True when the role lacks a right. */
export const isMissingRight = (error: unknown): boolean => sqlState(error) === '42501';

/**
 * `configuration_invalid` with the rights that the role of DATABASE_URL lacks and the command that
 * grants them.
 */
export const missingRightError = (what: string, cause?: unknown): TurnlogError =>
  new TurnlogError(
    'configuration_invalid',
    `The role of DATABASE_URL lacks rights in PostgreSQL: ${what}. Let the role that owns the database run: npm run cli -- database migrate --grant <role>`,
    { cause },
  );

/** Lost connections, a server without resources, and one that stops or starts. */
const AWAY_STATE = /^(?:08|53|57P0)/;

/**
 * True when the server can't be reached, does not answer, or has no room for the statement. False when
 * it refuses the statement, and for errors of reading its answer.
 */
export function isAway(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return AWAY_STATE.test(state);
  // By its name: the errors of sockets are of another realm in tests.
  const { name, code } = error as NodeJS.ErrnoException;
  return ['Error', 'AggregateError'].includes(name) && code?.startsWith('ERR_') !== true;
}

/** A statement that took too long. */
const TIMED_OUT = '57014';

export function databaseUnavailableError(cause: unknown): TurnlogError {
  const state = sqlState(cause);
  const answers = state !== undefined && state !== TIMED_OUT && !isAway(cause);
  const message = answers
    ? `PostgreSQL refuses a statement (SQLSTATE ${state}).`
    : "PostgreSQL can't be reached or does not answer.";
  return storeUnavailableError(message, cause, isAway(cause));
}

/**
 * Converts errors of the driver and the server to `store_unavailable`; TurnlogErrors pass
 * unchanged.
 */
export async function withDatabaseErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw isTurnlogError(error) ? error : databaseUnavailableError(error);
  }
}
