import { accountEventSchemas, type AccountEvent } from './account/events.ts';
import { agentEventSchemas, type AgentEvent } from './agent/events.ts';
import { auditEventSchemas, type AuditEvent } from './audit/events.ts';
import { logEventSchemas, type LogEvent } from './log/events.ts';
import { sessionEventSchemas, type SessionEvent } from './session/events.ts';

export type DomainEvent = AccountEvent | AgentEvent | AuditEvent | LogEvent | SessionEvent;

/** Every event type that this version of Turnlog writes. */
export const eventSchemas = [
  ...accountEventSchemas,
  ...agentEventSchemas,
  ...auditEventSchemas,
  ...logEventSchemas,
  ...sessionEventSchemas,
] as const;
