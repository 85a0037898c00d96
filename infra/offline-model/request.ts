import type { Static } from 'typebox';
import { Type } from '../../shared/domain/jsonSchema.ts';
import { lazyValidator, problemsOf } from '../../shared/lib/validation/validation.ts';

const ContentPart = Type.Object({ type: Type.String(), text: Type.Optional(Type.String()) });
const ToolCall = Type.Object({ id: Type.String(), function: Type.Object({ name: Type.String() }) });
const Content = Type.Union([Type.String(), Type.Array(ContentPart), Type.Null()]);

const Completion = Type.Object({
  model: Type.String(),
  messages: Type.Array(
    Type.Object({
      role: Type.String(),
      content: Type.Optional(Content),
      tool_calls: Type.Optional(Type.Array(ToolCall)),
      tool_call_id: Type.Optional(Type.String()),
    }),
    { minItems: 1 },
  ),
  tools: Type.Optional(
    Type.Array(
      Type.Object({
        type: Type.String(),
        function: Type.Optional(Type.Object({ name: Type.String() })),
      }),
    ),
  ),
  response_format: Type.Optional(
    Type.Object({
      type: Type.String(),
      json_schema: Type.Optional(
        Type.Object({ schema: Type.Optional(Type.Record(Type.String(), Type.Unknown())) }),
      ),
    }),
  ),
  stream: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
  stream_options: Type.Optional(
    Type.Union([Type.Object({ include_usage: Type.Optional(Type.Boolean()) }), Type.Null()]),
  ),
});

/** The part of a chat completion request that the offline model uses. */
export type CompletionRequest = Static<typeof Completion>;

const validator = lazyValidator(Completion);

/** Parses the body. Throws an Error with the first problem. */
export function parseRequest(body: string): CompletionRequest {
  const validate = validator();
  const request: unknown = JSON.parse(body);
  if (validate(request)) return request;
  const [problem] = problemsOf(validate.errors);
  throw new Error(`${problem?.path.slice(1) || 'the body'} ${problem?.message}`);
}

/** The text of a message, its parts joined. */
export function textOf({ content }: CompletionRequest['messages'][number]): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => part.text ?? '').join('');
}
