import type { Static } from 'typebox';
import { Type } from '../../domain/jsonSchema.ts';
import { RecordedResponseFormat } from '../../agents/parameters.ts';
import { ProtectedTextSchema, Tokens } from '../../domain/schema.ts';
import { RequestForm } from './requestForm.ts';

export const TurnNumber = Type.Integer({
  minimum: 1,
  description: '1-based number of the turn in its session',
});

export const ModelCall = Type.Object(
  {
    // Protected, because a hash without a salt would confirm a guess at the erased texts.
    request_sha256: ProtectedTextSchema({
      description: 'SHA-256 in hex of the request body in canonical JSON (RFC 8785)',
    }),
    // Protected, because a provider may derive its ids from the texts.
    response_id: ProtectedTextSchema({ description: "The provider's id of the answer" }),
    model: Type.String({ description: 'As the provider reported it' }),
    finish_reason: Type.String(),
    tokens: Tokens,
    counted: Type.Optional(
      Type.Literal(true, {
        description: 'The provider reported no usage: Turnlog counted `tokens` itself',
      }),
    ),
    duration_ms: Type.Integer({ minimum: 0 }),
    fallback: Type.Optional(
      Type.Object(
        {
          model: Type.String({ description: 'Id of the model in the registry' }),
          upstream_model: Type.String({ description: "The provider's own name of the model" }),
          max_completion_tokens: Type.Optional(Type.Integer()),
        },
        {
          title: 'FallbackModel',
          description:
            "Only where another model than the turn's answered: the request has its name and its limit in place of those of the settings",
        },
      ),
    ),
    form: Type.Optional(RequestForm),
  },
  { title: 'ModelCall', description: 'One model call that answered' },
);
export type ModelCall = Static<typeof ModelCall>;
export type FallbackModel = NonNullable<ModelCall['fallback']>;

const FunctionDefinition = Type.Object(
  {
    name: Type.String(),
    description: Type.String(),
    parameters: Type.Record(Type.String(), Type.Unknown()),
  },
  { title: 'FunctionDefinition', description: 'A function that the model may call' },
);

/**
 * The parts beside the messages that all requests of a turn have in common. They are recorded so
 * that the requests can be rebuilt from events alone.
 */
export const Settings = Type.Object(
  {
    model: Type.String({ description: "The provider's own name of the model" }),
    max_completion_tokens: Type.Optional(Type.Integer()),
    response_format: Type.Optional(RecordedResponseFormat),
    temperature: Type.Optional(Type.Number()),
    tools: Type.Optional(
      Type.Array(
        Type.Object(
          { type: Type.Literal('function'), function: FunctionDefinition },
          { title: 'ToolDefinition', description: 'What a model request says of a tool' },
        ),
      ),
    ),
  },
  { title: 'TurnSettings', description: 'What every request of a turn says beside its messages' },
);

/** How much of the session the prompt of a turn holds. */
export const TurnContext = Type.Object(
  {
    turns: Type.Integer({ minimum: 0, description: 'Earlier turns that the model sees' }),
    dropped: Type.Integer({
      minimum: 0,
      description:
        'Earlier turns, before those, that fell out of its context; those without an answer among them count, too',
    }),
    compacted: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'The model sees a summary of the turns up to this one in their place',
      }),
    ),
  },
  { title: 'TurnContext', description: 'How much of the session the model sees in a turn' },
);
export type TurnContext = Static<typeof TurnContext>;
