import { Type } from '../../../shared/domain/jsonSchema.ts';
import { namedPageQuery } from '../openapi/commonSchemas.ts';

const Price = Type.Object(
  {
    input_per_million: Type.String({ description: 'Price of prompt tokens, a decimal' }),
    output_per_million: Type.String({ description: 'Price of completion tokens, a decimal' }),
    currency: Type.String({ description: 'ISO 4217, the same of all models' }),
  },
  { title: 'Price', description: "Prices of a model's tokens" },
);

const Model = Type.Object(
  {
    id: Type.String(),
    provider: Type.String(),
    context_window: Type.Integer({ description: 'Tokens that the prompt and the answer share' }),
    max_output_tokens: Type.Optional(Type.Integer()),
    fallbacks: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Models to call instead, in this order, while this one fails',
      }),
    ),
    price: Type.Optional(Price),
  },
  { title: 'Model', description: 'A model that an agent may name' },
);

const Tool = Type.Object(
  {
    name: Type.String(),
    description: Type.String(),
    parameters: Type.Record(Type.String(), Type.Unknown(), {
      description:
        'JSON Schema of the arguments; empty for a name that stands for all tools of a server',
    }),
  },
  { title: 'Tool', description: 'A tool that an agent may name' },
);

export const ModelList = Type.Array(Model);
export const ToolList = Type.Array(Tool);

export const ModelListQuery = Type.Object(namedPageQuery('models'), {
  additionalProperties: false,
});
export const ToolListQuery = Type.Object(namedPageQuery('tools'), { additionalProperties: false });
