import {
  isTurnlogError,
  logChangedError,
  storeUnavailableError,
  TurnlogError,
} from '../../../shared/lib/errors/turnlogError.ts';

/**
 * Primary result codes of SQLite (https://sqlite.org/rescode.html) that an operator can do
 * something about.
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

/**
 * SQLite's primary result code of an error thrown by node:sqlite; undefined for any other error.
 */
export function sqliteCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | undefined)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

/** SQLite's reason for a failure as half a sentence; undefined where it has no words of ours. */
export const sqliteReason = (error: unknown): string | undefined => REASONS[sqliteCode(error) ?? 0];

export const isSqliteBusy = (error: unknown): boolean => sqliteCode(error) === 5;

/** Says why in words that are safe to show to a client: no path, no SQL. */
function describe(error: unknown): string {
  const reason = sqliteReason(error);
  return reason === undefined
    ? 'The event log is not available.'
    : `The event log is not available: ${reason}.`;
}

/** Any failure of a call to SQLite as `store_unavailable`; a TurnlogError passes unchanged. */
export const toStoreError = (error: unknown): TurnlogError =>
  isTurnlogError(error) ? error : storeUnavailableError(describe(error), error);

/** The event log can't be opened as it is, until somebody changes it. Names the file. */
export const cannotOpenError = (file: string, why: string, cause?: unknown): TurnlogError =>
  new TurnlogError('store_unavailable', `The event log ${file} cannot be opened: ${why}.`, {
    cause,
  });

/** `cannotOpen` for an error thrown by node:sqlite. */
export const toCannotOpenError = (file: string, error: unknown): TurnlogError =>
  isTurnlogError(error)
    ? error
    : cannotOpenError(file, sqliteReason(error) ?? (error as Error).message, error);

/** The log's names lead to other files than those that are open, or to none. */
export const logReplacedError = (change: string): TurnlogError =>
  logChangedError(
    `The event log was changed under the running service: ${change}. Nothing is recorded until it is back in its place, or the service was restarted.`,
  );

export const storeClosedError = (): TurnlogError =>
  storeUnavailableError('The event store is closed.');
