import { Type, type TSchema } from 'typebox';
import type { AgentPatch } from '../../../shared/agents/changeAgent.ts';
import { Instant } from '../../../shared/domain/schema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { Name } from '../../../shared/lib/validation/nameSchema.ts';
import { parameterFields } from './parameterSchemas.ts';
import {
  AgentId,
  agentPageQuery,
  listOrderQuery,
  numberedPageQuery,
} from '../openapi/commonSchemas.ts';
import { textSchema } from '../openapi/textSchemas.ts';

const { referenceCharacters, instructionBytes } = LIMITS.text;

export const CreateAgentBody = Type.Object(
  {
    name: Type.String({
      ...Name,
      description:
        'Agent name, at most 256 characters, at least one of them visible, without control characters',
      examples: ['Sums'],
    }),
    instruction: textSchema({
      maxBytes: instructionBytes,
      description:
        "System instruction that defines the agent's behaviour, at most 256 KiB of UTF-8, and at most 960 KiB as JSON",
      examples: ['Answer briefly.'],
    }),
    model: textSchema({
      maxLength: referenceCharacters,
      offered: 'models',
      description: 'One of GET /v1/models',
    }),
    tool: Type.Optional(
      textSchema({
        maxLength: referenceCharacters,
        offered: 'tools',
        description: 'One of GET /v1/tools, or several with commas between them',
      }),
    ),
    component: Type.Optional(
      textSchema({
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

/** A field of a change: null removes it, where it is optional. */
const changed = (field: TSchema): TSchema =>
  Type.Optional(Type.IsOptional(field) ? Type.Union([field, Type.Null()]) : field);

export const ChangeAgentBody = Type.Unsafe<AgentPatch>(
  Type.Object(
    Object.fromEntries(
      Object.entries(CreateAgentBody.properties).map(([name, field]) => [name, changed(field)]),
    ),
    {
      additionalProperties: false,
      title: 'ChangeAgentRequest',
      description: 'What of an agent changes (RFC 7396); null takes a field away',
    },
  ),
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

const Revision = Type.Integer({
  minimum: 0,
  description: 'Counts the changes of the agent, from 0; turns name the one that they ran with',
});

export const Agent = Type.Object(agentFields, {
  title: 'Agent',
  description: 'An agent as the list shows it',
});
export const AgentDetail = Type.Object(
  {
    ...agentFields,
    component: Type.String({ description: 'UI component' }),
    revision: Revision,
  },
  { title: 'AgentDetail', description: 'An agent on its own' },
);
export const DeletedAgent = Type.Object(
  { agent_id: AgentId, revision: Revision, deleted_at: Instant },
  { title: 'DeletedAgent', description: 'An agent that was deleted' },
);

export const AgentRevision = Type.Object(
  {
    revision: Revision,
    change: Type.Enum(['created', 'updated', 'deleted']),
    name: Type.String(),
    config: AgentConfig,
    component: Type.String({ description: 'UI component' }),
    recorded_at: Instant,
  },
  { title: 'AgentRevision', description: 'An agent as it was from one change to the next' },
);
export const AgentRevisions = Type.Array(AgentRevision);
export const AgentRevisionsQuery = Type.Object(
  {
    ...numberedPageQuery('revisions', 'Continues after this revision'),
    order: listOrderQuery('Which comes first'),
  },
  { additionalProperties: false },
);

export const AgentList = Type.Array(Agent);

export const AgentListQuery = Type.Object(
  agentPageQuery({ description: 'The most agents to answer; all of them when absent' }),
  { additionalProperties: false },
);
