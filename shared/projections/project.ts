import type { DomainEvent } from '../domain/events.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import type { RowChange } from './change.ts';
import { projectAccount } from './projectAccount.ts';
import { projectAgent } from './projectAgent.ts';
import { projectSession } from './projectSession.ts';

/** The changes that an event makes to the read models; pure. What a row can't follow is thrown by the change, not here. */
export function project(recorded: RecordedEvent, event: DomainEvent): RowChange[] {
  switch (event.type) {
    case 'account.opened.v1':
    case 'account.key_issued.v1':
    case 'account.key_revoked.v1':
      return projectAccount(recorded, event);
    case 'agent.created.v1':
    case 'agent.updated.v1':
    case 'agent.deleted.v1':
      return projectAgent(recorded, event);
    case 'session.started.v1':
    case 'session.turn_started.v1':
    case 'session.tool_called.v1':
    case 'session.turn_completed.v1':
    case 'session.turn_failed.v1':
    case 'session.turn_interrupted.v1':
      return projectSession(recorded, event);
    default:
      return event satisfies never;
  }
}
