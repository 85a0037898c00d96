import { defineStream, erasureOf, type Feature } from '../domain/feature.ts';
import { agent } from './decider.ts';
import { agentEventSchemas } from './events.ts';
import { projectAgent } from './projection.ts';
import { publicAgentEvents } from './publicEvents.ts';
import { AGENT_TABLES } from './tables.ts';

export const agents = {
  stream: defineStream('agent', agentEventSchemas, {
    opening: 'agent.created.v1',
    alwaysRecorded: ['agent.deleted.v1'],
    project: projectAgent,
    table: 'agents',
    erasure: erasureOf(
      agent,
      (erasure) => ({ type: 'erase_agent', ...erasure }),
      (data) => ({ type: 'agent.erased.v1', data }),
    ),
  }),
  tables: AGENT_TABLES,
  errors: ['agent_not_found', 'agent_erased', 'model_not_supported', 'tool_not_supported'],
  publicEvents: publicAgentEvents,
} as const satisfies Feature;
