import { accountEventSchemas, type AccountEvent } from './account/events.ts';
import { agentEventSchemas, type AgentEvent } from './agent/events.ts';
import { sessionEventSchemas, type SessionEvent } from './session/events.ts';

export type DomainEvent = AccountEvent | AgentEvent | SessionEvent;

/** Every event type that this version of Turnlog writes. */
export const eventSchemas = [
  ...accountEventSchemas,
  ...agentEventSchemas,
  ...sessionEventSchemas,
] as const;
