import { Type } from '../domain/jsonSchema.ts';
import { AgentParameters } from './parameters.ts';
import { Erasure, eventSchema, ProtectedTextSchema, type EventOf } from '../domain/schema.ts';

const Configuration = {
  name: ProtectedTextSchema(),
  instruction: ProtectedTextSchema(),
  model: Type.String(),
  tool: Type.Optional(Type.String()),
  component: Type.String(),
  compaction: Type.Optional(
    Type.Boolean({ description: 'Whether older turns of its sessions are summed up' }),
  ),
  parameters: Type.Optional(AgentParameters),
};

const AgentCreated = eventSchema('agent.created.v1', Configuration, 'An agent was created');
const AgentUpdated = eventSchema(
  'agent.updated.v1',
  Configuration,
  'An agent was changed; the whole configuration after the change',
);
const AgentDeleted = eventSchema(
  'agent.deleted.v1',
  Configuration,
  'An agent was deleted; its last configuration',
);

const AgentErased = eventSchema(
  'agent.erased.v1',
  Erasure.properties,
  'The texts of an agent were erased: nothing follows in its stream',
);

export const agentEventSchemas = [AgentCreated, AgentUpdated, AgentDeleted, AgentErased] as const;

export type AgentEvent = EventOf<(typeof agentEventSchemas)[number]>;
export type AgentConfiguration = EventOf<typeof AgentCreated>['data'];
