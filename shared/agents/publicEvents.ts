import { Type } from '../domain/jsonSchema.ts';
import type { AgentEvent } from './events.ts';
import {
  ERASED_TEXTS,
  pick,
  publicContent,
  publicSchema,
  type PublicContentOf,
} from '../publicEvents/schema.ts';

const ResponseFormat = Type.Object(
  {
    type: Type.String({ examples: ['text', 'json_object', 'json_schema'] }),
    json_schema: Type.Optional(
      Type.Object(
        {
          name: Type.String(),
          schema: Type.String({ description: 'The JSON Schema, as JSON text' }),
          strict: Type.Optional(Type.Boolean()),
        },
        { title: 'AnswerSchema', description: 'The JSON Schema of the answer' },
      ),
    ),
  },
  { title: 'ResponseFormat', description: 'What an answer has to be' },
);

const Agent = {
  agent_id: Type.String(),
  name: Type.String(),
  instruction: Type.String(),
  model: Type.String({ description: 'Id of the model in the registry' }),
  tool: Type.Optional(Type.String({ description: 'Absent when the agent has no tool' })),
  component: Type.String({ description: 'UI component that shows the agent' }),
  parameters: Type.Optional(
    Type.Object(
      {
        temperature: Type.Optional(Type.Number()),
        max_output_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
        response_format: Type.Optional(ResponseFormat),
      },
      { title: 'AgentParameters', description: 'How its model is asked, as far as it was set' },
    ),
  ),
  ...ERASED_TEXTS,
};

const AgentCreated = publicSchema(
  'turnlog.agent.created.v1',
  'agents',
  Agent,
  'An agent was created',
);
const AgentUpdated = publicSchema(
  'turnlog.agent.updated.v1',
  'agents',
  Agent,
  'An agent was changed; the whole configuration after the change',
);
const AgentDeleted = publicSchema(
  'turnlog.agent.deleted.v1',
  'agents',
  Agent,
  'An agent was deleted; its last configuration',
);

const AgentErased = publicSchema(
  'turnlog.agent.erased.v1',
  'agents',
  {
    agent_id: Type.String(),
    reason: Type.String({ examples: ['request', 'account'] }),
  },
  'An agent was erased: what consumers keep of it is to go; nothing follows',
);

const schemas = [AgentCreated, AgentUpdated, AgentDeleted, AgentErased] as const;

const FIELDS = ['name', 'instruction', 'model', 'tool', 'component', 'parameters'] as const;

/**
 * The public content of an agent's event. Fields are named one by one, so that a new field is not
 * published without an explicit decision.
 */
function toPublic(event: AgentEvent, agent_id: string): PublicContentOf<(typeof schemas)[number]> {
  switch (event.type) {
    case 'agent.created.v1':
      return publicContent(AgentCreated, { agent_id, ...pick(event.data, FIELDS) });
    case 'agent.updated.v1':
      return publicContent(AgentUpdated, { agent_id, ...pick(event.data, FIELDS) });
    case 'agent.deleted.v1':
      return publicContent(AgentDeleted, { agent_id, ...pick(event.data, FIELDS) });
    case 'agent.erased.v1':
      return publicContent(AgentErased, { agent_id, reason: event.data.reason });
    default:
      return event satisfies never;
  }
}

export const publicAgentEvents = { schemas, toPublic };
