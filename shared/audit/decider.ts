import type { Decider } from '../domain/decider.ts';
import type { Audited, AuditEvent } from './events.ts';

export interface AuditCommand {
  type: 'note';
  audited: Audited;
}

/** What was done with an account's events: each time is noted, and no time depends on another. */
export const audit: Decider<AuditCommand, null, AuditEvent> = {
  initialState: null,
  decide: ({ audited }) => [{ type: 'account.audited.v1', data: audited }],
  evolve: (state) => state,
};
