import {
  isTurnlogError,
  logChangedError,
  storeUnavailableError,
  TurnlogError,
} from '../../../shared/lib/errors/turnlogError.ts';

/**
 * Reasons by SQLite's primary result code (https://sqlite.org/rescode.html), for failures that an
 * operator can act on.
 */
const REASONS: Readonly<Record<number, string>> = {
  5: 'another process has kept it locked for too long',
  8: 'it may not be written',
  10: 'the disk reports an I/O error',
  11: 'its file is damaged',
  13: 'the disk is full',
  14: 'its file cannot be opened',
  26: 'its file is not a SQLite database',
};

/** SQLite's primary result code of an error thrown by node:sqlite; undefined for other errors. */
export function sqliteCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | undefined)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

/** The reason for a failure of SQLite, as a clause; undefined for codes without a listed reason. */
export const sqliteReason = (error: unknown): string | undefined => REASONS[sqliteCode(error) ?? 0];

export const isSqliteBusy = (error: unknown): boolean => sqliteCode(error) === 5;

/** Describes the failure for clients, without paths or SQL. */
function describe(error: unknown): string {
  const reason = sqliteReason(error);
  return reason === undefined
    ? 'The event log is not available.'
    : `The event log is not available: ${reason}.`;
}

/** Converts a failed SQLite call to `store_unavailable`; a TurnlogError passes unchanged. */
export const toStoreError = (error: unknown): TurnlogError =>
  isTurnlogError(error) ? error : storeUnavailableError(describe(error), error);

/** The event log can't be opened until an operator intervenes. The message names the file. */
export const cannotOpenError = (file: string, why: string, cause?: unknown): TurnlogError =>
  new TurnlogError('store_unavailable', `The event log ${file} cannot be opened: ${why}.`, {
    cause,
  });

/** The log's file names refer to other files than the open ones, or to none. */
export const logReplacedError = (change: string): TurnlogError =>
  logChangedError(
    `The event log was changed under the running service: ${change}. Nothing is recorded until it is back in its place, or the service was restarted.`,
  );

export const storeClosedError = (): TurnlogError =>
  storeUnavailableError('The event store is closed.');
