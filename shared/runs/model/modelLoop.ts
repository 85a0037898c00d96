import { chatRequest, systemText } from '../../sessions/turns/prompt.ts';
import type { ChatRequest } from '../../sessions/turns/chat.ts';
import type { TurnCompletedData } from '../../sessions/events.ts';
import type { ModelCall } from '../../sessions/turns/promptParts.ts';
import type { Tokens } from '../../domain/schema.ts';
import { TurnlogError, isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { canonicalJson } from '../../eventlog/canonicalJson.ts';
import { sha256 } from '../../eventlog/hashChain.ts';
import { LIMITS } from '../../limits.ts';
import type { ChatAnswer } from '../../ports/chatModel.ts';
import { yieldForText } from '../../lib/concurrency/yieldToEventLoop.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import { elapsedMs } from '../../lib/time/elapsedMs.ts';
import { completeWithFallbacks } from './callModel.ts';
import { callTools, createToolAllowance } from './callTools.ts';
import { countOrEstimate, MESSAGE_OVERHEAD, messageTexts } from './countTokens.ts';
import type { ModelContext, OpenRun } from '../context.ts';
import type { RecordTurnContext } from '../recordTurn.ts';
import type { RunRequest } from '../runRequest.ts';
/** Any JSON object. */
const ANY_OBJECT = '{"type":"object"}';

/** An answer that is not what was asked for; its text is kept with the turn that fails. */
export class ResponseFormatError extends TurnlogError {
  /** Undefined where it is too long to be recorded. */
  readonly output: string | undefined;

  constructor(why: string, output: string) {
    super('model_error', `The model's answer ${why}.`);
    const bytes = Buffer.byteLength(JSON.stringify(output));
    this.output = bytes > LIMITS.http.jsonTextBytes ? undefined : output;
  }
}

/**
 * Makes sure that an answer has the form that its turn asked for. Errors: UnfitAnswer
 * (`model_error`), the signal's reason.
 */
export async function requireResponseFormat(
  { catalogue: { schemas } }: Pick<ModelContext, 'catalogue'>,
  { settings: { response_format }, request }: OpenRun,
  output: string,
  signal: AbortSignal,
): Promise<void> {
  if (!response_format || response_format.type === 'text') return;
  const schema = response_format.json_schema?.schema ?? ANY_OBJECT;
  const checked = schemas
    .misfitOf(schema, output, request.actor.account_id)
    .catch((error: unknown) => {
      if (isTurnlogError(error)) return 'could not be checked in time';
      throw error;
    });
  const misfit = await abortable(checked, signal);
  if (misfit !== undefined) throw new ResponseFormatError(misfit, output);
}

/** What a turn is completed with. */
export type TurnAnswer = Omit<TurnCompletedData, 'turn'>;

/** What the calls of a turn took together. */
export const sumTokens = (calls: readonly Pick<ModelCall, 'tokens'>[]): Tokens =>
  calls.reduce(
    (sum, { tokens }) => ({
      prompt: sum.prompt + tokens.prompt,
      completion: sum.completion + tokens.completion,
      total: sum.total + tokens.total,
    }),
    { prompt: 0, completion: 0, total: 0 },
  );

/**
 * Calls the model, and the tools that it asks for, until it answers. Every tool call is recorded
 * before its result goes back to the model; every answered model call is added to `calls`, which
 * therefore also serves a run that fails. The signal is looked at before each call.
 * Errors: those of the model, `tool_error` after 8 rounds without an answer and for tool calls
 * beyond LIMITS.run, `model_error` with its text for an answer of another form than was asked for,
 * the signal's reason.
 */
export async function runModelLoop(
  context: ModelContext & RecordTurnContext,
  run: OpenRun,
  calls: ModelCall[],
  signal: AbortSignal,
): Promise<TurnAnswer> {
  const { settings, history, summary, turn } = run;
  const { instruction } = run.request.agent;
  const allowance = createToolAllowance(run.reserveBytes);
  for (let round = 1; round <= LIMITS.run.rounds; round += 1) {
    signal.throwIfAborted();
    const request = chatRequest(settings, systemText(instruction, summary), history, turn);
    const onDelta = run.request.deltas
      ? (text: string) => run.publisher.publishText(round, text)
      : undefined;
    const answer = await callModel(context, { run, request, calls, onDelta }, signal);
    if (answer.tool_calls.length === 0) {
      await requireResponseFormat(context, run, answer.content ?? '', signal);
      return turnAnswer(run, calls, {
        output: answer.content ?? '',
        tool_used: toolUsed(run),
      });
    }
    await callTools(context, { run, round, answer, allowance }, signal);
  }
  throw new TurnlogError(
    'tool_error',
    `The model went on calling tools for ${LIMITS.run.rounds} rounds without an answer.`,
  );
}

/** The first function called that the agent has; models also call others, which is an error result. */
function toolUsed({ settings, turn }: OpenRun): string {
  const offered = settings.tools?.map((tool) => tool.function.name) ?? [];
  return turn.tool_calls.find(({ tool }) => offered.includes(tool))?.tool ?? '';
}

interface ModelCallInput {
  run: Pick<OpenRun, 'request'>;
  request: ChatRequest;
  calls: ModelCall[];
  /** Is told what the model says, as it comes. */
  onDelta?: ((text: string) => void) | undefined;
}

/**
 * One call of the agent's model, which is added to `calls` when it is answered. Errors: those of the
 * model, the signal's reason.
 */
export async function callModel(
  context: ModelContext,
  { run, request, calls, onDelta }: ModelCallInput,
  signal: AbortSignal,
): Promise<ChatAnswer> {
  const { account_id } = run.request.actor;
  const chars = messageTexts(request.messages).reduce((sum, text) => sum + text.length, 0);
  await yieldForText(account_id, chars);
  const began = performance.now();
  const asked = await completeWithFallbacks(
    context,
    { run: run.request, request, calls, onDelta },
    signal,
  );
  const { answer, fallback } = asked;
  const duration_ms = elapsedMs(began);
  await yieldForText(account_id, chars);
  calls.push({
    request_sha256: sha256(canonicalJson(asked.request)),
    response_id: answer.response_id,
    model: answer.model,
    finish_reason: answer.finish_reason,
    tokens:
      answer.tokens ??
      (await abortable(countCallTokens(context, run.request, request, answer), signal)),
    duration_ms,
    ...(fallback && { fallback }),
  });
  return answer;
}

/** For a provider that reports no usage. */
async function countCallTokens(
  { budget }: Pick<ModelContext, 'budget'>,
  { actor }: RunRequest,
  request: ChatRequest,
  answer: ChatAnswer,
): Promise<Tokens> {
  const { account_id } = actor;
  const sent = await countOrEstimate(budget.counter, messageTexts(request.messages), account_id);
  const prompt = sent + request.messages.length * MESSAGE_OVERHEAD;
  const said = [
    answer.content ?? '',
    ...answer.tool_calls.map((call) => call.function.name + call.function.arguments),
  ];
  const completion = await countOrEstimate(budget.counter, said, account_id);
  return { prompt, completion, total: prompt + completion };
}

const turnAnswer = (
  run: OpenRun,
  calls: readonly ModelCall[],
  answer: { output: string; tool_used: string },
): TurnAnswer => {
  const last = calls.at(-1)!;
  return {
    ...answer,
    model: last.model,
    tokens: sumTokens(calls),
    finish_reason: last.finish_reason,
    duration_ms: elapsedMs(run.startedAt),
    calls: [...calls],
  };
};
