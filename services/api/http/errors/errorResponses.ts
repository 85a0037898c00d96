import type { ErrorCode } from '../../../../shared/lib/errors/turnlogError.ts';

interface Answer {
  status: number;
  description: string;
}

const INTERNAL: Answer = {
  status: 500,
  description:
    'Something failed that is not the client’s doing; the service’s log has the request id',
};

/**
 * The HTTP status of every code, and what it means to a client. The only place that knows HTTP
 * statuses of errors.
 */
export const ERROR_ANSWERS: Readonly<Record<ErrorCode, Answer>> = {
  invalid_json: { status: 400, description: 'The body is not JSON in UTF-8' },
  invalid_request: {
    status: 400,
    description:
      'The body, a query parameter or a header is not as described; `details` names each field',
  },
  model_not_supported: {
    status: 400,
    description: 'The model is not configured here; the message lists those that are',
  },
  tool_not_supported: {
    status: 400,
    description: 'The tool is not configured here; the message lists those that are',
  },
  component_not_supported: {
    status: 400,
    description: 'The UI component is not configured here; the message lists those that are',
  },
  unauthorized: { status: 401, description: 'The API key is missing, unknown, revoked or expired' },
  forbidden: { status: 403, description: 'The API key lacks the scope that the operation needs' },
  not_found: { status: 404, description: 'There is no such path' },
  agent_not_found: { status: 404, description: 'The account has no such agent' },
  session_not_found: {
    status: 404,
    description: 'The account, or the agent, has no such session; nothing was recorded',
  },
  turn_not_found: { status: 404, description: 'The session has no such turn, or it has not begun' },
  replay_not_found: { status: 404, description: 'The account has no such replay' },
  session_of_replay: {
    status: 409,
    description: 'The session was made by a replay, and stays as it is',
  },
  replay_limit_reached: {
    status: 409,
    description: 'As many replays of the account run as may run at a time; none was started',
  },
  tool_not_recorded: {
    status: 502,
    description:
      'Of a replayed turn: the model called a tool as the recorded turn had not, and no result is recorded',
  },
  webhook_not_found: { status: 404, description: 'The account has no such webhook' },
  webhook_limit_reached: {
    status: 409,
    description: 'The account has as many webhooks as it may have; nothing was created',
  },
  session_erased: { status: 410, description: 'The texts of the session were erased' },
  origin_erased: {
    status: 410,
    description:
      'The session is a fork, and the session that it was forked from was erased; what is asked needs turns that it shared',
  },
  agent_erased: { status: 410, description: 'The texts of the agent were erased' },
  erasure_refused: {
    status: 409,
    description:
      'A legal hold of the account, or the least time that it keeps sessions, forbids the erasure',
  },
  key_missing: {
    status: 503,
    description:
      'The key of a text was lost, or is under a master key that is not configured; an operator has to put it back',
  },
  proof_pending: {
    status: 503,
    description:
      'The transparency log does not cover the session’s last event yet; `Retry-After` says when to try again',
  },
  method_not_allowed: {
    status: 405,
    description: 'The path has no such method; `Allow` lists those it has',
  },
  session_busy: {
    status: 409,
    description: 'Another run held the session for longer than the wait limit',
  },
  idempotency_conflict: {
    status: 409,
    description:
      'The `Idempotency-Key` was sent with another body or query before; nothing was recorded',
  },
  idempotency_in_progress: {
    status: 409,
    description:
      'The first request with the `Idempotency-Key` still runs; send it again for its answer',
  },
  precondition_failed: {
    status: 412,
    description: 'The agent is at another revision than `If-Match` names; nothing was recorded',
  },
  stream_damaged: {
    status: 409,
    description:
      'The session’s stream is not whole: events of it were deleted, are hidden, or are not Turnlog’s; nothing was recorded. The message names the revisions that were found',
  },
  position_unknown: {
    status: 409,
    description:
      'Nothing is at the position: it is of another log, of what a restored log has lost, or of another list. Begin anew, and know what you have by the ids of events',
  },
  payload_too_large: {
    status: 413,
    description: 'The body is over 2 MiB, or the event made from it would be over 1 MiB',
  },
  unsupported_media_type: {
    status: 415,
    description: 'The body is not declared as `application/json`, or it is compressed',
  },
  rate_limited: {
    status: 429,
    description:
      'The API key or its account has used up what it may; `Retry-After` says when to try again',
  },
  model_error: {
    status: 502,
    description:
      'The model server refused, failed or answered what can’t be used; the turn is recorded as failed',
  },
  tool_error: {
    status: 502,
    description:
      'The model called tools for 8 rounds without an answer, or too many of them; the turn is recorded as failed',
  },
  model_overloaded: {
    status: 503,
    description:
      'The model server is overloaded, limits the rate, or has failed too often to be asked now; `Retry-After` says when to try again',
  },
  overloaded: {
    status: 503,
    description:
      'The process has more to do than it can hold, and took nothing on; `Retry-After` says when to try again',
  },
  store_unavailable: {
    status: 503,
    description:
      'The event store or the read models can’t be reached, or the service is starting or shutting down; `Retry-After` says when to try again',
  },
  log_changed: {
    status: 503,
    description:
      'The event log is not the one that this service has followed: it was restored, exchanged or removed; nothing is written before the operator has decided. `Retry-After` says when to try again',
  },
  release_too_old: {
    status: 503,
    description:
      'A newer release has written an event to the session that this replica does not know; `Retry-After` says when to try again, at another replica',
  },
  turn_interrupted: {
    status: 503,
    description:
      'The turn was cancelled, or cut off before its end could be recorded: the message says which, and so does the transcript; the run may be tried again',
  },
  model_timeout: {
    status: 504,
    description: 'The model did not answer in time; the turn is recorded as failed',
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
};
