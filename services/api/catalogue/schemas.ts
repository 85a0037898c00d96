import { Type } from 'typebox';

const Price = Type.Object(
  {
    input_per_million: Type.String({ description: 'Of tokens of a prompt, a decimal' }),
    output_per_million: Type.String({ description: 'Of tokens of an answer, a decimal' }),
    currency: Type.String({ description: 'ISO 4217, the same of all models' }),
  },
  { title: 'Price', description: "What a model's tokens cost" },
);

const Model = Type.Object(
  {
    id: Type.String(),
    provider: Type.String(),
    context_window: Type.Integer({ description: 'Tokens that the prompt and the answer share' }),
    max_output_tokens: Type.Optional(Type.Integer()),
    fallbacks: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Models that are asked, in this order, where this one is in trouble',
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
