import type { Static } from 'typebox';
import type { AgentRow } from '../../../shared/readModels/tables.ts';
import type { RecordedRevision } from '../../../shared/queries/agentRevisions.ts';
import type { Agent, AgentDetail, AgentRevision } from '../schemas/agents.ts';

/** An agent as the list shows it. */
export const presentAgent = ({
  agent_id,
  name,
  instruction,
  model,
  tool,
  created_at,
  updated_at,
}: AgentRow): Static<typeof Agent> => ({
  agent_id,
  name,
  config: { agent_id, name, instruction, model, ...(tool === null ? {} : { tool }) },
  created_at,
  updated_at,
});

/** An agent on its own: also its UI component, which the contract keeps out of the list. */
export const presentAgentDetail = (row: AgentRow): Static<typeof AgentDetail> => ({
  ...presentAgent(row),
  component: row.component,
  revision: row.revision,
});

/** An agent as one of its revisions has it. */
export const presentRevision = ({
  agent_id,
  revision,
  change,
  configuration,
  recorded_at,
}: RecordedRevision): Static<typeof AgentRevision> => {
  const { name, instruction, model, tool, component } = configuration;
  const config = { agent_id, name, instruction, model, ...(tool !== undefined && { tool }) };
  return { revision, change, name, config, component, recorded_at };
};
