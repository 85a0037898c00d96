import { Type } from 'typebox';

export const ModelList = Type.Array(
  Type.Object({
    id: Type.String(),
    provider: Type.String(),
    context_window: Type.Integer({ description: 'Tokens that the prompt and the answer share' }),
    max_output_tokens: Type.Optional(Type.Integer()),
  }),
);

export const ToolList = Type.Array(
  Type.Object({
    name: Type.String(),
    description: Type.String(),
    parameters: Type.Record(Type.String(), Type.Unknown(), {
      description: 'JSON Schema of the arguments',
    }),
  }),
);
