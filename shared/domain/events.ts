import { accountEventSchemas, type AccountEvent } from './account/events.ts';
import { agentEventSchemas, type AgentEvent } from './agent/events.ts';
import { auditEventSchemas, type AuditEvent } from './audit/events.ts';
import { logEventSchemas, type LogEvent } from './log/events.ts';
import { replayEventSchemas, type ReplayEvent } from './replay/events.ts';
import { requestEventSchemas, type RequestEvent } from './request/events.ts';
import { sessionEventSchemas, type SessionEvent } from './session/events.ts';
import { webhookEventSchemas, type WebhookEvent } from './webhook/events.ts';

export type DomainEvent =
  | AccountEvent
  | AgentEvent
  | AuditEvent
  | LogEvent
  | ReplayEvent
  | RequestEvent
  | SessionEvent
  | WebhookEvent;

/**
 * True for the type of an event that erases its stream: whatever came before it in there, and
 * however damaged that is, it can always be followed, and nothing follows it.
 */
export const isErasure = (type: string): boolean =>
  /^(account|agent|replay|session|webhook)\.erased\.v1$/.test(type);

/** Every event type that this version of Turnlog writes. */
export const eventSchemas = [
  ...accountEventSchemas,
  ...agentEventSchemas,
  ...auditEventSchemas,
  ...logEventSchemas,
  ...replayEventSchemas,
  ...requestEventSchemas,
  ...sessionEventSchemas,
  ...webhookEventSchemas,
] as const;
