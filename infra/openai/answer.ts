import { Type, type Static } from 'typebox';
import type { ToolCallRequest } from '../../shared/domain/session/chat.ts';
import type { Tokens } from '../../shared/domain/schema.ts';
import { TurnlogError } from '../../shared/errors.ts';
import type { ChatAnswer } from '../../shared/ports/chatModel.ts';
import { lazyValidator } from '../../shared/validation.ts';

const optional = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

/** What is read of a chat completion; some servers leave parts out or send null. */
const Completion = Type.Object({
  id: optional(Type.String()),
  model: optional(Type.String()),
  choices: Type.Array(
    Type.Object({
      finish_reason: optional(Type.String()),
      message: Type.Object({
        content: optional(Type.String()),
        refusal: optional(Type.String()),
        tool_calls: optional(
          Type.Array(
            Type.Object({
              id: optional(Type.String()),
              function: Type.Object({
                name: Type.String({ minLength: 1 }),
                arguments: optional(Type.String()),
              }),
            }),
          ),
        ),
      }),
    }),
    { minItems: 1 },
  ),
});
type Message = Static<typeof Completion>['choices'][number]['message'];

const count = Type.Integer({ minimum: 0 });
const Usage = Type.Object({
  usage: Type.Object({
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: Type.Optional(count),
  }),
});

const isCompletion = lazyValidator(Completion);
const reportsUsage = lazyValidator(Usage);

/** Text that can be stored and answered: NUL and halves of surrogate pairs become U+FFFD. */
const storable = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD');

/** A tool call is answered by its id; where the server sent none it gets one. */
const toolCalls = (message: Message): ToolCallRequest[] =>
  (message.tool_calls ?? []).map((call, index) => ({
    id: storable(call.id || `call_${index + 1}`),
    type: 'function',
    function: {
      name: storable(call.function.name),
      arguments: storable(call.function.arguments ?? ''),
    },
  }));

function tokens(body: unknown): Tokens | undefined {
  if (!reportsUsage()(body)) return undefined;
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = body.usage;
  return { prompt, completion, total: total ?? prompt + completion };
}

/**
 * The answer in a chat completion's body. A refusal is an answer: its text is the content. `model`
 * is the one asked for when the provider does not say which answered. Errors: `model_error` when it
 * is not a chat completion, or its first choice is empty.
 */
export function readAnswer(body: unknown, modelAsked: string): ChatAnswer {
  if (!isCompletion()(body))
    throw new TurnlogError('model_error', "The model provider's answer is not a chat completion.");
  const choice = body.choices[0];
  const calls = choice ? toolCalls(choice.message) : [];
  const text = choice?.message.content || choice?.message.refusal || null;
  if (!choice || (text === null && calls.length === 0))
    throw new TurnlogError('model_error', 'The model provider sent an empty answer.');
  return {
    response_id: storable(body.id ?? ''),
    model: storable(body.model || modelAsked),
    content: text === null ? null : storable(text),
    tool_calls: calls,
    finish_reason: storable(choice.finish_reason ?? ''),
    tokens: tokens(body),
  };
}
