import { Type, type Static } from 'typebox';
import type { ToolCallRequest } from '../../shared/sessions/turns/chat.ts';
import type { Tokens } from '../../shared/domain/schema.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ChatAnswer } from '../../shared/ports/chatModel.ts';
import { lazyValidator } from '../../shared/lib/validation/validation.ts';

const optional = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

const { functionNameChars, callIdChars, argumentsChars, labelChars } = LIMITS.model;

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
              id: optional(Type.String({ maxLength: callIdChars })),
              function: Type.Object({
                name: Type.String({ minLength: 1, maxLength: functionNameChars }),
                arguments: optional(Type.String({ maxLength: argumentsChars })),
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

const count = Type.Integer({ minimum: 0, maximum: LIMITS.model.tokens });
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
export const toStorableText = (text: string): string =>
  text.toWellFormed().replaceAll('\0', '\uFFFD');

/** What is recorded for ever and only names something. */
const label = (text: string): string => toStorableText(text.slice(0, labelChars));

/** A tool call is answered by its id; where the server sent none it gets one. */
const toolCalls = (message: Message): ToolCallRequest[] =>
  (message.tool_calls ?? []).map((call, index) => ({
    id: toStorableText(call.id || `call_${index + 1}`),
    type: 'function',
    function: {
      name: toStorableText(call.function.name),
      arguments: toStorableText(call.function.arguments ?? ''),
    },
  }));

function tokens(body: unknown): Tokens | undefined {
  if (!reportsUsage()(body)) return undefined;
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = body.usage;
  return { prompt, completion, total: total ?? prompt + completion };
}

/** Why there is no text, where the provider says so. */
const EMPTY: ReadonlyMap<unknown, string> = new Map([
  ['length', ': the model reached its limit of tokens before it said anything'],
  ['content_filter', ': its content filter stopped the model'],
]);

/**
 * The answer in a chat completion's body. A refusal is an answer: its text is the content. `model`
 * is the one asked for when the provider does not say which answered. Errors: `model_error` when it
 * is not a chat completion, holds a tool call over its limits, or its first choice is empty.
 */
export function parseAnswer(body: unknown, modelAsked: string): ChatAnswer {
  if (!isCompletion()(body))
    throw new TurnlogError(
      'model_error',
      "The model provider's answer is not a chat completion, or has a tool call that is too long.",
    );
  const choice = body.choices[0];
  const calls = choice ? toolCalls(choice.message) : [];
  const text = choice?.message.content || choice?.message.refusal || null;
  if (!choice || (text === null && calls.length === 0))
    throw new TurnlogError(
      'model_error',
      `The model provider sent an empty answer${EMPTY.get(choice?.finish_reason) ?? ''}.`,
    );
  return {
    response_id: label(body.id ?? ''),
    model: label(body.model || modelAsked),
    content: text === null ? null : toStorableText(text),
    tool_calls: calls,
    finish_reason: label(choice.finish_reason ?? ''),
    tokens: tokens(body),
  };
}
