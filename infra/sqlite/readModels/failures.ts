import {
  isTurnlogError,
  storeUnavailableError,
  type TurnlogError,
} from '../../../shared/lib/errors/turnlogError.ts';
import { sqliteCode, sqliteReason } from '../eventStore/errors.ts';
import { openFailureReason } from '../eventStore/unwritable.ts';

/** SQLite's primary result codes (sqlite.org/rescode.html) for a row that can't be stored. */
const ROW_CODES = new Set([
  18 /* TOOBIG */, 19 /* CONSTRAINT */, 20 /* MISMATCH */, 25 /* RANGE */,
]);
const BINDING_ERRORS = new Set([
  'ERR_INVALID_ARG_TYPE',
  'ERR_INVALID_ARG_VALUE',
  'ERR_OUT_OF_RANGE',
]);
const DAMAGED_CODES = new Set([11 /* CORRUPT */, 26 /* NOTADB */]);

/** True when the row caused the error, not the database. */
export const isRowFailure = (error: unknown): boolean =>
  ROW_CODES.has(sqliteCode(error) ?? 0) ||
  BINDING_ERRORS.has((error as NodeJS.ErrnoException).code ?? '');

/** True when the file is damaged or not a database. */
export const isDamaged = (error: unknown): boolean => DAMAGED_CODES.has(sqliteCode(error) ?? 0);

/** True when the disk is full; the error may be the cause of another one. */
export const isDiskFull = (error: unknown): boolean =>
  [error, (error as Error).cause].some((one) => sqliteCode(one) === 13 /* FULL */);

/** Safe to show to clients. */
export function readModelsUnavailable(cause: unknown): TurnlogError {
  const reason = sqliteReason(cause);
  const why = reason === undefined ? '' : `: ${reason}`;
  return storeUnavailableError(`The read models can't be reached${why}.`, cause);
}

/**
 * Converts an error thrown by node:sqlite for the operator, with the file; a TurnlogError passes
 * unchanged.
 */
export const readModelsNotOpened = (file: string, error: unknown): TurnlogError =>
  isTurnlogError(error)
    ? error
    : storeUnavailableError(
        `The read models ${file} cannot be opened: ${openFailureReason(file, error)}.`,
        error,
      );

/** Converts SQLite's errors to `store_unavailable`; TurnlogErrors pass unchanged. */
export async function withReadModelErrors<Result>(
  work: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw isTurnlogError(error) ? error : readModelsUnavailable(error);
  }
}
