import { Type } from 'typebox';
import { Instant } from '../../../shared/domain/schema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { Name } from '../../../shared/name.ts';
import { parameterFields } from './parameters.ts';
import { AgentId, agentPageQuery } from './common.ts';
import { text } from './text.ts';

const { referenceCharacters, instructionBytes } = LIMITS.text;

export const CreateAgentBody = Type.Object(
  {
    name: Type.String({
      ...Name,
      description:
        'Agent name, at most 256 characters, at least one of them visible, without control characters',
      examples: ['Sums'],
    }),
    instruction: text({
      maxBytes: instructionBytes,
      description:
        "System instruction that defines the agent's behaviour, at most 256 KiB of UTF-8, and at most 960 KiB as JSON",
      examples: ['Answer briefly.'],
    }),
    model: text({
      maxLength: referenceCharacters,
      offered: 'models',
      description: 'One of GET /v1/models',
    }),
    tool: Type.Optional(
      text({
        maxLength: referenceCharacters,
        offered: 'tools',
        description: 'One of GET /v1/tools, or several with commas between them',
      }),
    ),
    component: Type.Optional(
      text({
        maxLength: referenceCharacters,
        offered: 'components',
        description: 'UI component override',
      }),
    ),
    compaction: Type.Optional(
      Type.Boolean({
        description:
          'Whether the model sums up the older turns of a session before they fall out of its context',
      }),
    ),
    ...parameterFields,
  },
  {
    additionalProperties: false,
    title: 'CreateAgentRequest',
    description: 'What an agent is made of',
  },
);

export const CreatedAgent = Type.Object(
  { agent_id: AgentId, created_at: Instant },
  { title: 'CreatedAgent', description: 'An agent that was created' },
);

const AgentConfig = Type.Object(
  {
    agent_id: AgentId,
    name: Type.String(),
    instruction: Type.String(),
    model: Type.String(),
    tool: Type.Optional(Type.String({ description: 'Present when a tool was set' })),
    compaction: Type.Optional(
      Type.Boolean({ description: 'Present where older turns of its sessions are summed up' }),
    ),
    ...parameterFields,
  },
  { title: 'AgentConfig', description: 'What an agent runs with' },
);

const agentFields = {
  agent_id: AgentId,
  name: Type.String(),
  config: AgentConfig,
  created_at: Instant,
  updated_at: Instant,
};

export const Agent = Type.Object(agentFields, {
  title: 'Agent',
  description: 'An agent as the list shows it',
});
export const AgentDetail = Type.Object(
  {
    ...agentFields,
    component: Type.String({ description: 'UI component' }),
  },
  { title: 'AgentDetail', description: 'An agent on its own' },
);
export const AgentList = Type.Array(Agent);

export const AgentListQuery = Type.Object(
  agentPageQuery({ description: 'The most agents to answer; all of them when absent' }),
  { additionalProperties: false },
);
