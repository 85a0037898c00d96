import { accountEventSchemas, type AccountEvent } from '../accounts/events.ts';
import { agentEventSchemas, type AgentEvent } from '../agents/events.ts';
import { auditEventSchemas, type AuditEvent } from '../audit/events.ts';
import { logEventSchemas, type LogEvent } from '../restoredLogs/events.ts';
import { replayEventSchemas, type ReplayEvent } from '../replays/events.ts';
import { requestEventSchemas, type RequestEvent } from '../requests/events.ts';
import { sessionEventSchemas, type SessionEvent } from '../sessions/events.ts';
import { webhookEventSchemas, type WebhookEvent } from '../webhooks/events.ts';

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
