import type { Decider } from '../domain/decider.ts';
import type { AuditData, AuditEvent } from './events.ts';

interface AuditCommand {
  type: 'note';
  audited: AuditData;
}

/**
 * An audit of the actions on an account's events. Every action is recorded, regardless of earlier
 * ones.
 */
export const audit: Decider<AuditCommand, null, AuditEvent> = {
  initialState: null,
  decide: ({ audited }) => [{ type: 'account.audited.v1', data: audited }],
  evolve: (state) => state,
};
