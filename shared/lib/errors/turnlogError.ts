import type { FeatureErrorCode } from '../../features.ts';

/** Problems that any request can have. */
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
  | 'read_model_damaged'
  | 'store_unavailable';

/**
 * Problems that an operator must fix, thrown at start and by command line and relay; clients never
 * receive them.
 */
type OperatorCode =
  | 'configuration_invalid'
  | 'position_invalid'
  | 'data_folder_in_use'
  | 'rebuild_running'
  | 'local_server_failed';

/** Errors of adapters that callers handle; clients receive only `internal_error`. */
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
 * A problem of one input field: a sentence, and where the field is (a JSON pointer, or `header`,
 * `query`, `path`).
 */
export interface ErrorDetail {
  message: string;
  path: string;
}

/**
 * Advice for a client after a failure. `same_key`: send the request again, with the same
 * `Idempotency-Key` if it has one; `new_key`: the failure is recorded under the key, so another
 * attempt needs another key; `never`: the request fails again however often it is sent.
 */
export const RETRY_ADVICE = ['same_key', 'new_key', 'never'] as const;
export type RetryAdvice = (typeof RETRY_ADVICE)[number];

interface ErrorOptions {
  /** True when the same call may succeed later unchanged. */
  retriable?: boolean;
  /** How long to wait before a retry, in seconds. */
  retryAfterSeconds?: number;
  details?: Record<string, ErrorDetail>;
  /** Advice for the client, if neither `retriable` nor the status implies it. */
  retry?: RetryAdvice | undefined;
  /** The turn that the request started. */
  turn?: { session_id: string; turn: number } | undefined;
  /** True when a store can't be reached, or has no room for the request. It has refused nothing. */
  isAway?: boolean;
  cause?: unknown;
}

/**
 * The error class of everything except deciders, which throw a Rejection. `message` is a sentence
 * that is safe to show to clients.
 */
export class TurnlogError extends Error {
  readonly code: ErrorCode;
  readonly retriable: boolean;
  readonly retryAfterSeconds: number | undefined;
  readonly details: Record<string, ErrorDetail> | undefined;
  readonly retry: RetryAdvice | undefined;
  readonly turn: ErrorOptions['turn'];
  readonly isAway: boolean;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'TurnlogError';
    this.code = code;
    this.retriable = options.retriable ?? false;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.details = options.details;
    this.retry = options.retry;
    this.turn = options.turn;
    this.isAway = options.isAway ?? false;
  }

  /** A copy that names the turn that the request started. */
  withTurn(turn: NonNullable<ErrorOptions['turn']>): TurnlogError {
    const { code, message, retriable, retryAfterSeconds, details, retry } = this;
    const optional = {
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      ...(details && { details }),
    };
    return new TurnlogError(code, message, { ...optional, retriable, retry, turn, cause: this });
  }
}

/** True for a TurnlogError, of the given code if any. */
export const isTurnlogError = (error: unknown, code?: ErrorCode): error is TurnlogError =>
  error instanceof TurnlogError && (code === undefined || error.code === code);

/**
 * The log is not the expected one: writing to it or following it is unsafe until an operator has
 * intervened.
 */
export const logChangedError = (message: string, cause?: unknown): TurnlogError =>
  new TurnlogError('log_changed', message, { retriable: true, retryAfterSeconds: 10, cause });

/** True when the log can't be used at present, and its users have to wait. */
export const isLogUnavailable = (error: unknown): error is TurnlogError =>
  isTurnlogError(error, 'store_unavailable') || isTurnlogError(error, 'log_changed');

/** A store can't be reached, read or written; the caller may retry. */
export const storeUnavailableError = (
  message: string,
  cause?: unknown,
  isAway = false,
): TurnlogError =>
  new TurnlogError('store_unavailable', message, {
    retriable: true,
    retryAfterSeconds: 1,
    isAway,
    cause,
  });

/** A note, checkpoint, tile or proof is invalid; the message says how. */
export const proofInvalidError = (message: string, cause?: unknown): TurnlogError =>
  new TurnlogError('proof_invalid', message, { cause });
