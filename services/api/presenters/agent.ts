import type { Static } from 'typebox';
import type { AgentRow } from '../../../shared/readModels/tables.ts';
import type { Agent, AgentDetail } from '../schemas/agents.ts';

/** An agent as the list shows it. */
export const presentAgent = ({
  agent_id,
  name,
  instruction,
  model,
  tool,
  compaction,
  created_at,
  updated_at,
}: AgentRow): Static<typeof Agent> => ({
  agent_id,
  name,
  config: {
    agent_id,
    name,
    instruction,
    model,
    ...(tool === null ? {} : { tool }),
    ...(compaction && { compaction }),
  },
  created_at,
  updated_at,
});

/** An agent on its own: also its UI component, which the contract keeps out of the list. */
export const presentAgentDetail = (row: AgentRow): Static<typeof AgentDetail> => ({
  ...presentAgent(row),
  component: row.component,
});
