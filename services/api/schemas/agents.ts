import { Type } from 'typebox';
import { Instant } from '../../../shared/domain/schema.ts';
import { AgentId, pageQuery } from './common.ts';
import { KIB, text } from './text.ts';

export const CreateAgentBody = Type.Object(
  {
    name: text({
      minLength: 1,
      maxLength: 256,
      description: 'Agent name, at most 256 characters',
      examples: ['Sums'],
    }),
    instruction: text({
      minLength: 1,
      maxBytes: 256 * KIB,
      description:
        "System instruction that defines the agent's behaviour, at most 256 KiB of UTF-8, and at most 960 KiB as JSON",
      examples: ['Answer briefly.'],
    }),
    model: text({
      minLength: 1,
      maxLength: 256,
      description: 'One of GET /v1/models',
      examples: ['offline-echo'],
    }),
    tool: Type.Optional(
      text({
        minLength: 1,
        maxLength: 256,
        description: 'One of GET /v1/tools',
        examples: ['calculator'],
      }),
    ),
    component: Type.Optional(
      text({
        minLength: 1,
        maxLength: 256,
        description: 'UI component override',
        examples: ['Chat'],
      }),
    ),
  },
  { additionalProperties: false },
);

export const CreatedAgent = Type.Object({ agent_id: AgentId, created_at: Instant });

const AgentConfig = Type.Object({
  agent_id: AgentId,
  name: Type.String(),
  instruction: Type.String(),
  model: Type.String(),
  tool: Type.Optional(Type.String({ description: 'Present when a tool was set' })),
});

const agentFields = {
  agent_id: AgentId,
  name: Type.String(),
  config: AgentConfig,
  created_at: Instant,
  updated_at: Instant,
};

export const Agent = Type.Object(agentFields);
export const AgentDetail = Type.Object({
  ...agentFields,
  component: Type.String({ description: 'UI component' }),
});
export const AgentList = Type.Array(Agent);

export const AgentListQuery = Type.Object(
  pageQuery({ description: 'The most agents to answer; all of them when absent' }),
  { additionalProperties: false },
);
