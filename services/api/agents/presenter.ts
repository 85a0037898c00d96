import type { Static } from 'typebox';
import type { AgentParameters } from '../../../shared/agents/parameters.ts';
import { configurationColumns } from '../../../shared/agents/projection.ts';
import { parseFormat } from '../../../shared/sessions/turns/requestBody.ts';
import type { AgentRow } from '../../../shared/readModels/tables.ts';
import type { RecordedRevision } from '../../../shared/agents/revisions.ts';
import type { Agent, AgentDetail, AgentRevision, Parameters } from './schemas.ts';

/** The parameters as the client sent them. */
const presentParameters = ({
  response_format,
  ...others
}: AgentParameters): Static<typeof Parameters> => ({
  ...others,
  ...(response_format && {
    response_format: parseFormat(response_format),
  }),
});

type ConfigColumns = Pick<
  AgentRow,
  'agent_id' | 'name' | 'instruction' | 'model' | 'tool' | 'compaction' | 'parameters'
>;

const presentConfig = ({
  agent_id,
  name,
  instruction,
  model,
  tool,
  compaction,
  parameters,
}: ConfigColumns): Static<typeof Agent>['config'] => ({
  agent_id,
  name,
  instruction,
  model,
  ...(tool === null ? {} : { tool }),
  ...(compaction && { compaction }),
  ...(parameters && presentParameters(parameters)),
});

/** An agent in the list. */
export const presentAgent = (row: AgentRow): Static<typeof Agent> => ({
  agent_id: row.agent_id,
  name: row.name,
  config: presentConfig(row),
  created_at: row.created_at,
  updated_at: row.updated_at,
  revision: row.revision,
});

/** A single agent, with its UI component, which the contract keeps out of the list. */
export const presentAgentDetail = (row: AgentRow): Static<typeof AgentDetail> => ({
  ...presentAgent(row),
  component: row.component,
});

/** A revision of an agent. */
export const presentRevision = ({
  agent_id,
  revision,
  change,
  configuration,
  recorded_at,
}: RecordedRevision): Static<typeof AgentRevision> => {
  const columns = configurationColumns(configuration);
  const { name, component } = columns;
  const config = presentConfig({ agent_id, ...columns });
  return { revision, change, name, config, component, recorded_at };
};
