import type { FeatureErrorCode } from '../../features.ts';

/** What is wrong with a request, whatever it asks for. */
type RequestCode =
  | 'invalid_json'
  | 'invalid_request'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'precondition_failed'
  | 'rate_limited'
  | 'payload_too_large'
  | 'unsupported_media_type';

/** Why the log or this process can't serve a request. */
type ServiceCode =
  | 'key_missing'
  | 'stream_damaged'
  | 'release_too_old'
  | 'overloaded'
  | 'log_changed'
  | 'store_unavailable';

/** Errors that an operator has to fix, thrown by start, command line and relay; clients never see them. */
type OperatorCode =
  | 'configuration_invalid'
  | 'position_invalid'
  | 'data_folder_in_use'
  | 'rebuild_running'
  | 'local_server_failed';

/** Errors of adapters that their callers handle; clients see no more than `internal_error`. */
type InternalCode =
  | 'stream_conflict'
  | 'event_id_reused'
  | 'event_invalid'
  | 'publisher_fenced'
  | 'publisher_unavailable'
  | 'web_refused'
  | 'web_failed'
  | 'internal_error';

/**
 * The code of every failure except a decider's rejection. The codes of a feature are listed in its
 * manifest. Only the API knows HTTP statuses.
 */
export type ErrorCode = FeatureErrorCode | RequestCode | ServiceCode | OperatorCode | InternalCode;

/**
 * What is wrong with one field of the input: a sentence, and where it is (a JSON pointer, or
 * `header`, `query`, `path`).
 */
export interface ErrorDetail {
  message: string;
  path: string;
}

interface ErrorOptions {
  /** True when the same call may succeed later without a change. */
  retriable?: boolean;
  /** How long to wait before trying again, in seconds. */
  retryAfterSeconds?: number;
  details?: Record<string, ErrorDetail>;
  cause?: unknown;
}

/**
 * The error class of everything around the domain, whose deciders throw a Rejection. `message` is a
 * human sentence that is safe to show to a client.
 */
export class TurnlogError extends Error {
  readonly code: ErrorCode;
  readonly retriable: boolean;
  readonly retryAfterSeconds: number | undefined;
  readonly details: Record<string, ErrorDetail> | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'TurnlogError';
    this.code = code;
    this.retriable = options.retriable ?? false;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.details = options.details;
  }
}

/** True when `error` is a TurnlogError, of that code if one is given. */
export const isTurnlogError = (error: unknown, code?: ErrorCode): error is TurnlogError =>
  error instanceof TurnlogError && (code === undefined || error.code === code);

/**
 * The log is not the one that it was: what would be written to it, or followed from it, can't be
 * trusted until an operator has looked.
 */
export const logChangedError = (message: string, cause?: unknown): TurnlogError =>
  new TurnlogError('log_changed', message, { retriable: true, retryAfterSeconds: 10, cause });

/** True where the log can't be used at this time, and what was asked of it has to wait. */
export const isLogUnavailable = (error: unknown): error is TurnlogError =>
  isTurnlogError(error, 'store_unavailable') || isTurnlogError(error, 'log_changed');

/** The event store can't be reached or can't write now; the caller may try again. */
export const storeUnavailableError = (message: string, cause?: unknown): TurnlogError =>
  new TurnlogError('store_unavailable', message, { retriable: true, retryAfterSeconds: 1, cause });

/** A note, a checkpoint, a tile or a proof is not what it has to be; the sentence says how. */
export const proofInvalidError = (message: string, cause?: unknown): TurnlogError =>
  new TurnlogError('proof_invalid', message, { cause });
