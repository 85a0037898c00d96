import type { Static } from 'typebox';
import type { AgentParameters } from '../../../shared/domain/agent/parameters.ts';
import { requestFormat } from '../../../shared/domain/session/prompt.ts';
import type { AgentRow } from '../../../shared/readModels/tables.ts';
import type { Agent, AgentDetail } from '../schemas/agents.ts';
import type { Parameters } from '../schemas/parameters.ts';

/** As the client gave them. */
const presentParameters = ({
  response_format,
  ...others
}: AgentParameters): Static<typeof Parameters> => ({
  ...others,
  ...(response_format && {
    response_format: requestFormat(response_format),
  }),
});

/** An agent as the list shows it. */
export const presentAgent = ({
  agent_id,
  name,
  instruction,
  model,
  tool,
  compaction,
  parameters,
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
    ...(parameters && presentParameters(parameters)),
  },
  created_at,
  updated_at,
});

/** An agent on its own: also its UI component, which the contract keeps out of the list. */
export const presentAgentDetail = (row: AgentRow): Static<typeof AgentDetail> => ({
  ...presentAgent(row),
  component: row.component,
});
