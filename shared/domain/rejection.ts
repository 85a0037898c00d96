export type RejectionCode =
  | 'account_exists'
  | 'account_missing'
  | 'account_erased'
  | 'key_exists'
  | 'key_unknown'
  | 'key_inactive'
  | 'key_limit'
  | 'key_outlives_manager'
  | 'key_scopes_exceeded'
  | 'last_manager'
  | 'manager_invalid'
  | 'retention_invalid'
  | 'account_held'
  | 'agent_exists'
  | 'agent_missing'
  | 'agent_deleted'
  | 'agent_erased'
  | 'session_exists'
  | 'session_missing'
  | 'session_erased'
  | 'session_of_another_agent'
  | 'webhook_exists'
  | 'webhook_missing'
  | 'replay_exists'
  | 'replay_missing'
  | 'replay_ended'
  | 'session_of_replay'
  | 'session_moved'
  | 'turn_open'
  | 'turn_not_open'
  | 'turn_of_another_run'
  | 'request_differs';

/**
 * Thrown by a decider when the command does not fit the state; no event is written. Each feature of
 * the API maps rejections to client errors.
 */
export class Rejection extends Error {
  readonly code: RejectionCode;

  constructor(code: RejectionCode, message: string) {
    super(message);
    this.name = 'Rejection';
    this.code = code;
  }
}

/** True when `error` is a Rejection with this code. */
export const isRejection = (error: unknown, code: RejectionCode): error is Rejection =>
  error instanceof Rejection && error.code === code;
