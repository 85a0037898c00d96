import { Type } from 'typebox';
import { ERASED_TEXTS, publicSchema } from './schema.ts';

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

export const publicAgentEvents = [AgentCreated, AgentUpdated, AgentDeleted, AgentErased] as const;
