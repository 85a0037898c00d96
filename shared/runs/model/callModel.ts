import type { ChatRequest } from '../../sessions/turns/chat.ts';
import type { FallbackModel, ModelCall } from '../../sessions/turns/promptParts.ts';
import { fallbackRequest } from '../../sessions/turns/prompt.ts';
import { requestBody } from '../../sessions/turns/requestBody.ts';
import {
  correctCalls,
  hasObjectArguments,
  uncheckedCalls,
  type FormedRequest,
} from '../../sessions/turns/requestForm.ts';
import type { Tokens } from '../../domain/schema.ts';
import { digestOfJson } from '../../eventlog/hashChain.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import {
  SLICE_BYTES,
  yieldForText,
  yieldToEventLoop,
} from '../../lib/concurrency/yieldToEventLoop.ts';
import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { elapsedMs } from '../../lib/time/elapsedMs.ts';
import { isModelTrouble, type ChatAnswer, type ModelInfo } from '../../ports/chatModel.ts';
import type { ModelContext } from '../context.ts';
import {
  countOrEstimate,
  fitsContext,
  MESSAGE_OVERHEAD,
  messageTexts,
  promptChars,
} from './contextWindow.ts';
import type { RunRequest } from '../runRequest.ts';
import type { HeldAnswers } from './heldAnswers.ts';

/** A call of the agent's model within a turn. */
export interface FallbackCall {
  run: RunRequest;
  request: ChatRequest;
  /** Answered calls of the turn so far. */
  calls: readonly ModelCall[];
  /** Takes over the memory of the answer. */
  held: HeldAnswers;
  /** Receives the text of the answer as it arrives. */
  onDelta?: ((text: string) => void) | undefined;
  /** With `onDelta`: receives the reasoning as it arrives. */
  onReasoning?: ((text: string) => void) | undefined;
}

/** An answer, the request that was sent for it, and the fallback model that answered, if any. */
interface Completion extends FormedRequest {
  answer: ChatAnswer;
  fallback: FallbackModel | undefined;
}

function fallbackModel({ id, upstream_model, max_output_tokens }: ModelInfo, agentLimit?: number) {
  const limits = [agentLimit, max_output_tokens].filter((limit) => limit !== undefined);
  return {
    model: id,
    upstream_model,
    ...(limits.length > 0 && { max_completion_tokens: Math.min(...limits) }),
  };
}

/** Corrects the tool calls of a request, and parses new arguments of them in slices. */
export async function correctInSlices(
  request: ChatRequest,
  accountId: string,
): Promise<FormedRequest> {
  let chars = 0;
  for (const call of uncheckedCalls(request)) {
    chars += call.function.arguments.length;
    if (chars > SLICE_BYTES) {
      await yieldToEventLoop(accountId);
      chars = call.function.arguments.length;
    }
    hasObjectArguments(call);
  }
  return correctCalls(request);
}

/**
 * Calls the agent's model, and if it is unavailable its fallbacks in order, provided the prompt
 * fits them. Once part of an answer has been shown or recorded, only the model that gave it is
 * called. `passOver` receives the empty answers of fallbacks. Throws the error of the first model.
 */
export async function completeWithFallbacks(
  { catalogue: { models }, budget }: ModelContext,
  { run: { agent, actor, replay }, request, calls, held, onDelta, onReasoning }: FallbackCall,
  signal: AbortSignal,
  passOver: (completion: Completion) => Promise<void>,
): Promise<Completion> {
  let hasShown = false;
  const noteShown =
    (show: (text: string) => void) =>
    (text: string): void => {
      hasShown = true;
      show(text);
    };
  // No event of a stream takes back what readers have received.
  const listeners = onDelta && {
    onDelta: noteShown(onDelta),
    ...(onReasoning && { onReasoning: noteShown(onReasoning) }),
  };
  const { account_id } = actor;
  const caller = { account_id, hold: held.hold, ...listeners };
  const call = async (fallback: FallbackModel | undefined): Promise<Completion> => {
    const modelRequest = fallback ? fallbackRequest(fallback, request) : request;
    const corrected = await correctInSlices(modelRequest, account_id);
    const answer = await models.complete(
      fallback?.model ?? agent.model,
      corrected.request,
      signal,
      caller,
    );
    const { request: sent, form } = answer.sent ?? corrected;
    return {
      answer,
      request: sent,
      fallback,
      ...((form ?? corrected.form) && { form: { ...corrected.form, ...form } }),
    };
  };
  const last = calls.at(-1);
  if (last) return call(last.fallback);
  const recorded = replay?.fallback;
  if (recorded && models.find(recorded.model)) return call(recorded);
  try {
    return await call(undefined);
  } catch (error) {
    if (hasShown || !isModelTrouble(error)) throw error;
    for (const id of models.find(agent.model)?.fallbacks ?? []) {
      signal.throwIfAborted();
      const model = models.find(id)!;
      if (!(await fitsContext(budget, model, { agent, actor, request }))) continue;
      const fallback = fallbackModel(model, agent.parameters?.max_output_tokens);
      const completion = await call(fallback).catch((failure: unknown) => {
        signal.throwIfAborted();
        if (hasShown || !isTurnlogError(failure)) throw failure;
      });
      if (completion && (hasShown || !isEmpty(completion.answer))) return completion;
      if (completion) await passOver(completion);
    }
    throw error;
  }
}

const isEmpty = ({ content, tool_calls }: ChatAnswer): boolean =>
  content === null && tool_calls.length === 0;

/** Why an answer has no text, by finish reason. */
const EMPTY_ANSWER_REASONS: ReadonlyMap<string, string> = new Map([
  ['length', ': the model reached its limit of tokens before it said anything'],
  ['content_filter', ': its content filter stopped the model'],
]);

/**
 * Calls the agent's model, and adds the answered call to `calls`. Throws `model_error` for an answer
 * without a text and tool calls, which the provider has counted like any other.
 */
export async function callModel(
  context: ModelContext,
  call: FallbackCall & { calls: ModelCall[] },
  signal: AbortSignal,
): Promise<ChatAnswer> {
  const { run, request, calls, held } = call;
  const { account_id } = run.actor;
  const chars = promptChars(request.messages);
  await yieldForText(account_id, chars);
  let startedAt = performance.now();
  async function addCall({ answer, request: sent, fallback, form }: Completion): Promise<void> {
    const duration_ms = elapsedMs(startedAt);
    await yieldForText(account_id, chars);
    const { sha256: request_sha256 } = await digestOfJson(requestBody(sent), account_id);
    calls.push({
      request_sha256,
      response_id: answer.response_id,
      model: answer.model,
      finish_reason: answer.finish_reason,
      tokens:
        answer.tokens ??
        (await abortable(held.during(countCallTokens(context, run, request, answer)), signal)),
      ...(!answer.tokens && { counted: true }),
      duration_ms,
      ...(fallback && { fallback }),
      ...(form && { form }),
    });
    startedAt = performance.now();
  }
  const completion = await completeWithFallbacks(context, call, signal, addCall);
  const answer = withinEvent(completion.answer);
  await addCall({ ...completion, answer });
  if (isEmpty(answer))
    throw new TurnlogError(
      'model_error',
      `The model provider sent an empty answer${EMPTY_ANSWER_REASONS.get(answer.finish_reason) ?? ''}.`,
    );
  return answer;
}

/** The answer, without reasoning that would make it too long for an event. */
function withinEvent(answer: ChatAnswer): ChatAnswer {
  if (answer.reasoning === undefined) return answer;
  const { content, reasoning, tool_calls, ...rest } = answer;
  const bytes = Buffer.byteLength(JSON.stringify([content, reasoning, tool_calls]));
  return bytes > LIMITS.http.jsonTextBytes ? { ...rest, content, tool_calls } : answer;
}

/** Counts tokens for a provider that reports no usage. */
async function countCallTokens(
  { budget: { counter } }: Pick<ModelContext, 'budget'>,
  { actor: { account_id } }: RunRequest,
  { messages }: ChatRequest,
  { content, reasoning = '', tool_calls }: ChatAnswer,
): Promise<Tokens> {
  const sent = await countOrEstimate(counter, messageTexts(messages), account_id);
  const prompt = sent + messages.length * MESSAGE_OVERHEAD;
  const functionCalls = tool_calls.map((call) => call.function.name + call.function.arguments);
  const written = [reasoning, content ?? '', ...functionCalls];
  const completion = await countOrEstimate(counter, written, account_id);
  return { prompt, completion, total: prompt + completion };
}
