import { idempotencyConflictError } from '../../../../shared/requests/idempotency.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { ErrorResponse } from './errorPresenter.ts';
import { defineFeature } from '../feature.ts';

export const STREAM_ERROR_CODES = ['stream_damaged', 'release_too_old', 'key_missing'] as const;

/** Codes of reading a session. */
export const SESSION_ERROR_CODES = [
  'session_not_found',
  'session_erased',
  ...STREAM_ERROR_CODES,
] as const;

/** Codes of reading a session with the turns that it may share with others. */
export const SHARED_SESSION_ERROR_CODES = [...SESSION_ERROR_CODES, 'origin_erased'] as const;

/** The error for a cursor that no page of the list has returned. */
export function unknownPageError(): TurnlogError {
  const message = '"after" must be that of the `Link` header of the page before.';
  return new TurnlogError('position_unknown', `There is no such page: ${message}`, {
    details: { after: { message, path: 'query/after' } },
  });
}

const INTERNAL: ErrorResponse = {
  status: 500,
  description: 'An internal error, not caused by the client; the service’s log has the request id',
};

/** Error codes and rejections that belong to no single feature. */
export const httpFeature = defineFeature({
  routes: [],
  errors: {
    invalid_json: { status: 400, description: 'The body is not JSON in UTF-8' },
    invalid_request: {
      status: 400,
      description:
        'The body, a query parameter or a header is not as described; `details` names each field',
    },
    unauthorized: {
      status: 401,
      description: 'The API key or chat token is missing, unknown, revoked or expired',
    },
    forbidden: {
      status: 403,
      description:
        'The API key lacks the scope that the operation needs, or a scope of the key that it would manage; or a chat token is not for the operation or the agent',
    },
    not_found: { status: 404, description: 'There is no such path' },
    method_not_allowed: {
      status: 405,
      description: 'The path has no such method; `Allow` lists those it has',
    },
    idempotency_conflict: {
      status: 409,
      description:
        'The `Idempotency-Key` was sent with another body or query before; nothing was recorded',
    },
    idempotency_in_progress: {
      status: 409,
      description:
        'The first request with the `Idempotency-Key` is still running; retry to get its response',
    },
    stream_damaged: {
      status: 409,
      description:
        'The session’s stream is damaged: events were deleted, are hidden, or are not Turnlog’s; nothing was recorded. The message lists the revisions that were found',
    },
    payload_too_large: {
      status: 413,
      description: 'The body is over 2 MiB, or the event made from it would be over 1 MiB',
    },
    unsupported_media_type: {
      status: 415,
      description:
        'The body is not declared as `application/json` (or `application/merge-patch+json`, of a PATCH), or it is compressed',
    },
    rate_limited: {
      status: 429,
      description:
        'The API key or its account has reached its limit; `Retry-After` says when to try again',
    },
    key_missing: {
      status: 503,
      description:
        'The key of a text was lost, or is under a master key that is not configured; an operator has to restore it',
    },
    overloaded: {
      status: 503,
      description:
        'The process is at its capacity and did not begin the request; `Retry-After` says when to try again',
    },
    read_model_damaged: {
      status: 503,
      description:
        'A row of the read models does not say what the log says, and is not used; an operator has to rebuild the read models',
    },
    store_unavailable: {
      status: 503,
      description:
        'The event store or the read models can’t be reached, or the service is starting or shutting down; `Retry-After` says when to try again',
    },
    log_changed: {
      status: 503,
      description:
        'The event log is not the one that this service has followed: it was restored, replaced or removed; nothing is written until the operator has decided. `Retry-After` says when to try again',
    },
    release_too_old: {
      status: 503,
      description:
        'A newer release has written an event to the session that this replica does not know; `Retry-After` says when to try again, at another replica',
    },
    internal_error: INTERNAL,
    configuration_invalid: INTERNAL,
    position_invalid: INTERNAL,
    data_folder_in_use: INTERNAL,
    rebuild_running: INTERNAL,
    local_server_failed: INTERNAL,
    stream_conflict: INTERNAL,
    event_id_reused: INTERNAL,
    event_invalid: INTERNAL,
    log_restored: INTERNAL,
    publisher_fenced: INTERNAL,
    publisher_unavailable: INTERNAL,
    proof_invalid: INTERNAL,
    web_refused: INTERNAL,
    web_failed: INTERNAL,
  },
  rejections: {
    request_differs: idempotencyConflictError,
  },
});
