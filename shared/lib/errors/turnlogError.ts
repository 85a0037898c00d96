/** What is wrong with a request. Thrown by the API, by commands for its size and names; clients see it. */
type RequestCode =
  | 'invalid_json'
  | 'invalid_request'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'rate_limited'
  | 'payload_too_large'
  | 'unsupported_media_type';

/** Why a command or a query fails. Thrown by them and by the ports they use; clients see it. */
type UseCaseCode =
  | 'model_not_supported'
  | 'tool_not_supported'
  | 'component_not_supported'
  | 'agent_not_found'
  | 'session_not_found'
  | 'turn_not_found'
  | 'replay_not_found'
  | 'session_of_replay'
  | 'replay_limit_reached'
  | 'tool_not_recorded'
  | 'webhook_not_found'
  | 'webhook_limit_reached'
  | 'session_erased'
  | 'origin_erased'
  | 'agent_erased'
  | 'erasure_refused'
  | 'key_missing'
  | 'proof_pending'
  | 'session_busy'
  | 'idempotency_conflict'
  | 'idempotency_in_progress'
  | 'precondition_failed'
  | 'stream_damaged'
  | 'release_too_old'
  | 'position_unknown'
  | 'model_error'
  | 'tool_error'
  | 'model_overloaded'
  | 'model_timeout'
  | 'turn_interrupted'
  | 'overloaded'
  | 'log_changed'
  | 'store_unavailable';

/** What only an operator mends. Thrown by start, command line, relay; terminal and log show it. */
type OperatorCode =
  | 'configuration_invalid'
  | 'position_invalid'
  | 'data_folder_in_use'
  | 'rebuild_running'
  | 'local_server_failed';

/** What adapters tell their callers, who handle it; clients see no more than `internal_error`. */
type InternalCode =
  | 'stream_conflict'
  | 'event_id_reused'
  | 'event_invalid'
  | 'log_restored'
  | 'publisher_fenced'
  | 'publisher_unavailable'
  | 'proof_invalid'
  | 'web_refused'
  | 'web_failed'
  | 'internal_error';

/** The code of every failure but a decider's rejection. Only the API knows HTTP statuses. */
export type ErrorCode = RequestCode | UseCaseCode | OperatorCode | InternalCode;

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
