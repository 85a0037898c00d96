export type RejectionCode =
  | 'account_exists'
  | 'account_missing'
  | 'key_exists'
  | 'key_missing'
  | 'agent_exists'
  | 'session_missing'
  | 'session_of_another_agent'
  | 'turn_open'
  | 'turn_not_open';

/** A decider's "no": the command does not fit the state. Nothing was decided, nothing is to be written. */
export class Rejection extends Error {
  readonly code: RejectionCode;

  constructor(code: RejectionCode, message: string) {
    super(message);
    this.name = 'Rejection';
    this.code = code;
  }
}
