import type { Static } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import type { Tokens } from '../../../shared/domain/schema.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { ChatAnswer } from '../../../shared/ports/chatModel.ts';
import type { ToolCallRequest } from '../../../shared/sessions/turns/chat.ts';
import { nullish } from './chunk.ts';
import { FINISH_REASONS } from '../finishReasons.ts';
import { reasoningOf, recordableFields } from './providerFields.ts';
import { lazyValidator } from '../../../shared/lib/validation/validation.ts';

const { functionNameChars, callIdChars, argumentsChars, labelChars, reasoningChars } = LIMITS.model;

/** The parts of a chat completion that are read; some servers omit them or send null. */
const Completion = Type.Object({
  id: nullish(Type.String()),
  model: nullish(Type.String()),
  choices: Type.Array(
    Type.Object({
      index: Type.Optional(Type.Unknown()),
      finish_reason: nullish(Type.String()),
      message: Type.Object({
        content: nullish(Type.String()),
        refusal: nullish(Type.String()),
        reasoning_content: Type.Optional(Type.Unknown()),
        reasoning: Type.Optional(Type.Unknown()),
        tool_calls: nullish(
          Type.Array(
            Type.Object({
              id: nullish(Type.String({ maxLength: callIdChars })),
              function: Type.Object({
                name: Type.String({ minLength: 1, maxLength: functionNameChars }),
                arguments: nullish(Type.String({ maxLength: argumentsChars })),
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

/** Replaces NUL and lone surrogates, which can't be stored, with U+FFFD. */
export const toStorableText = (text: string): string =>
  text.toWellFormed().replaceAll('\0', '\uFFFD');

/** The beginning of a text. A copy, because a part of a text would keep all of it in memory. */
export const beginningOf = (text: string, chars: number): string =>
  text.length <= chars ? text : Buffer.from(text.slice(0, chars)).toString();

/** A short text that is recorded, and erased with the session. */
const label = (text: string): string => toStorableText(beginningOf(text, labelChars));

/**
 * Names that are recorded in plain, and outlive an erasure. Programs that read exports may take the name
 * for a member of an object, where `__proto__` is none.
 */
const NAME = /^(?!__proto__$)[\w.:/@+-]{1,128}$/;
/** The name, or another text where it is no name and might be text of the conversation. */
const nameOr = (otherwise: string, text: string): string => (NAME.test(text) ? text : otherwise);

/**
 * One more than the limit of a turn, so that the code that enforces the limit reports the excess. The
 * search for an unused id takes the square of the calls.
 */
export const MOST_CALLS = LIMITS.run.toolCalls + 1;

/**
 * The requested tool calls. A result refers to a call's id, so a call without one, or with that of
 * an earlier call, gets an id here.
 */
function toolCalls(message: Message): ToolCallRequest[] {
  const ids = new Set<string>();
  return (message.tool_calls ?? []).slice(0, MOST_CALLS).map((call, index) => {
    const storableId = toStorableText(call.id || `call_${index + 1}`);
    let id = storableId;
    for (let number = index + 1; ids.has(id); number += 1) id = `${storableId}_${number}`;
    ids.add(id);
    const extra = recordableFields(call);
    return {
      id,
      type: 'function',
      ...(extra !== undefined && { extra }),
      function: {
        name: toStorableText(call.function.name),
        arguments: toStorableText(call.function.arguments ?? ''),
      },
    };
  });
}

/** The counts of a usage, without the provider's own members; undefined if it is none. */
export function usageIn(body: unknown): Static<typeof Usage>['usage'] | undefined {
  if (!reportsUsage()(body)) return undefined;
  const { prompt_tokens, completion_tokens, total_tokens } = body.usage;
  return { prompt_tokens, completion_tokens, ...(total_tokens !== undefined && { total_tokens }) };
}

/** The reported usage. Servers that do not count send zeros, which no answered call can have used. */
function tokens(body: unknown): Tokens | undefined {
  if (!reportsUsage()(body)) return undefined;
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = body.usage;
  if (prompt === 0 && completion === 0) return undefined;
  // A total beyond both is that of a server that counts reasoning apart. Budgets are compared with it.
  return { prompt, completion, total: Math.max(total ?? 0, prompt + completion) };
}

/** An error that the provider reports within an answer. `what` completes "The model provider …". */
export function reportedError(what: string, error: unknown): TurnlogError {
  const reason = FINISH_REASONS.get((error as { code?: unknown }).code);
  return new TurnlogError(
    'model_error',
    `The model provider ${what} with an error${reason === undefined ? '' : `: ${reason}`}.`,
    { retriable: true },
  );
}

/**
 * The answer in a chat completion's body. A refusal is an answer: its text is the content. `model` is
 * the requested one when the provider does not name another. Throws `model_error` when the body is not a
 * chat completion, holds a tool call over its limits, or ended with an error.
 */
export function parseAnswer(body: unknown, requestedModel: string): ChatAnswer {
  if (!isCompletion()(body)) {
    const error = (body as { error?: unknown } | null)?.error;
    if (error) throw reportedError('answered', error);
    throw new TurnlogError(
      'model_error',
      "The model provider's answer is not a chat completion, or has a tool call that is too long.",
    );
  }
  // Some servers answer with several choices, in any order.
  const choice = body.choices.find(({ index }) => index === 0) ?? body.choices[0]!;
  // OpenRouter's finish reason of an answer that its server has not completed.
  if (choice.finish_reason === 'error') throw reportedError('broke off its answer', {});
  const text = choice.message.content || choice.message.refusal || null;
  const reasoning = toStorableText(beginningOf(reasoningOf(choice.message), reasoningChars));
  return {
    response_id: label(body.id ?? ''),
    model: nameOr(requestedModel, body.model ?? ''),
    content: text === null ? null : toStorableText(text),
    ...(reasoning !== '' && { reasoning }),
    tool_calls: toolCalls(choice.message),
    finish_reason: nameOr('', choice.finish_reason ?? ''),
    tokens: tokens(body),
  };
}
