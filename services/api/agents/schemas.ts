import type { TSchema } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import type { AgentPatch } from '../../../shared/agents/changeAgent.ts';
import { Instant } from '../../../shared/domain/schema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { Name } from '../../../shared/lib/validation/nameSchema.ts';
import {
  AgentId,
  agentPageQuery,
  listOrderQuery,
  numberedPageQuery,
  textSchema,
} from '../openapi/commonSchemas.ts';

const strict = { additionalProperties: false };

const AnswerSchema = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z0-9_-]{1,64}$',
      'x-rule': 'must be 1 to 64 letters, digits, underscores or hyphens',
      examples: ['answer'],
    }),
    schema: Type.Record(Type.String(), Type.Unknown(), {
      description: `A JSON Schema (2020-12) without external references, at most ${LIMITS.responseFormat.schemaBytes} bytes as JSON and ${LIMITS.responseFormat.patternClasses} character classes in patterns; formats are not checked`,
      examples: [{ type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }],
    }),
    strict: Type.Optional(
      Type.Boolean({ description: 'For the provider: constrains the output of the model' }),
    ),
  },
  { ...strict, title: 'AnswerSchema', description: 'The JSON Schema that an answer must match' },
);

export const SchemaFormat = Type.Object(
  { type: Type.Literal('json_schema'), json_schema: AnswerSchema },
  { ...strict, title: 'SchemaFormat', description: 'JSON that matches a schema' },
);
export const PlainFormat = Type.Object(
  { type: Type.Enum(['text', 'json_object']) },
  { ...strict, title: 'PlainFormat', description: 'Text, or any JSON object' },
);

const ResponseFormat = Type.Union([PlainFormat, SchemaFormat], {
  description:
    'The format of an answer; any other answer results in 502 `model_error`, and is in the transcript',
});

/** Parameters of model requests, in the body of an agent and in its configuration. */
const parameterFields = {
  temperature: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 2,
      description: 'Randomness of the output; the provider’s default when absent',
    }),
  ),
  max_output_tokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2_147_483_647,
      description: 'The most tokens of one answer, not more than the model has',
    }),
  ),
  response_format: Type.Optional(ResponseFormat),
};
export const Parameters = Type.Object(parameterFields);

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
        description: 'One of GET /v1/tools, or several separated by commas',
      }),
    ),
    component: Type.Optional(
      textSchema({
        maxLength: referenceCharacters,
        examples: ['Chat'],
        description:
          'UI component that shows the agent, such as `turnlog-chat`, the chat of Turnlog for other pages; by default the first of `COMPONENTS`',
      }),
    ),
    compaction: Type.Optional(
      Type.Boolean({
        description:
          'Whether the model summarises older turns of a session before they fall out of its context',
      }),
    ),
    ...parameterFields,
  },
  {
    additionalProperties: false,
    title: 'CreateAgentRequest',
    description: 'The configuration of an agent',
  },
);

/** A field of a change: null removes it, where it is optional. */
const changed = (field: TSchema): TSchema =>
  Type.Optional(Type.IsOptional(field) ? Type.Union([field, Type.Null()]) : field);

const SchemaPatch = Type.Object(
  {
    name: Type.Optional(AnswerSchema.properties.name),
    schema: Type.Optional(AnswerSchema.properties.schema),
    strict: changed(AnswerSchema.properties.strict),
  },
  { ...strict, title: 'AnswerSchemaPatch', description: 'Changes of an answer’s JSON Schema' },
);
const FormatPatch = Type.Object(
  {
    type: Type.Optional(Type.Enum(['text', 'json_object', 'json_schema'])),
    json_schema: Type.Optional(Type.Union([SchemaPatch, Type.Null()])),
  },
  {
    ...strict,
    title: 'ResponseFormatPatch',
    description:
      'Changes of the format, which are merged with it member by member: `json_schema: null` removes a schema',
  },
);
export const ChangeAgentBody = Type.Unsafe<AgentPatch>(
  Type.Object(
    {
      ...Object.fromEntries(
        Object.entries(CreateAgentBody.properties).map(([name, field]) => [name, changed(field)]),
      ),
      response_format: Type.Optional(Type.Union([FormatPatch, Type.Null()])),
    },
    {
      additionalProperties: false,
      title: 'ChangeAgentRequest',
      description: 'Changes of an agent (RFC 7396); null removes a field',
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
      Type.Boolean({ description: 'Present if older turns of its sessions are summarised' }),
    ),
    ...parameterFields,
  },
  { title: 'AgentConfig', description: 'The configuration that an agent runs with' },
);

const Revision = Type.Integer({
  minimum: 0,
  description:
    'Counts the changes of the agent, from 0; each turn has the revision that it ran with',
});

const agentFields = {
  agent_id: AgentId,
  name: Type.String(),
  config: AgentConfig,
  created_at: Instant,
  updated_at: Instant,
  revision: Revision,
};

export const Agent = Type.Object(agentFields, {
  title: 'Agent',
  description: 'An agent in the list',
});
export const AgentDetail = Type.Object(
  {
    ...agentFields,
    component: Type.String({ description: 'UI component' }),
  },
  { title: 'AgentDetail', description: 'A single agent' },
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
  { title: 'AgentRevision', description: 'A revision of an agent' },
);
export const AgentRevisions = Type.Array(AgentRevision);
export const AgentRevisionsQuery = Type.Object(
  {
    ...numberedPageQuery('revisions', 'Continues after this revision'),
    order: listOrderQuery('Which revision comes first'),
  },
  { additionalProperties: false },
);

export const AgentList = Type.Array(Agent);

export const AgentListQuery = Type.Object(
  agentPageQuery({ description: 'The most agents to answer; all of them when absent' }),
  { additionalProperties: false },
);
