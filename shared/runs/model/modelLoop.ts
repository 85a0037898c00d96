import { chatRequest, systemText } from '../../sessions/turns/prompt.ts';
import type { TurnCompletedData } from '../../sessions/events.ts';
import type { ModelCall } from '../../sessions/turns/promptParts.ts';
import type { Tokens } from '../../domain/schema.ts';
import { TurnlogError, isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import { elapsedMs } from '../../lib/time/elapsedMs.ts';
import { callModel, type FallbackCall } from './callModel.ts';
import type { ChatAnswer } from '../../ports/chatModel.ts';
import { callTools, createToolAllowance, type ToolCallContext } from './callTools.ts';
import type { ModelContext, OpenRun } from '../context.ts';

/** A schema that allows any JSON object. */
const ANY_OBJECT = '{"type":"object"}';

/** An answer that is not in the requested format. Its text is recorded with the failed turn. */
export class ResponseFormatError extends TurnlogError {
  /** Undefined if the text is too long to be recorded. */
  readonly output: string | undefined;

  constructor(problem: string, output: string) {
    super('model_error', `The model's answer ${problem}.`);
    const bytes = Buffer.byteLength(JSON.stringify(output));
    this.output = bytes > LIMITS.http.jsonTextBytes ? undefined : output;
  }
}

/** Throws a ResponseFormatError unless the answer is in the format that its turn requested. */
export async function requireResponseFormat(
  { catalogue: { schemas } }: Pick<ModelContext, 'catalogue'>,
  { settings: { response_format }, request, held }: OpenRun,
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
  const misfit = await abortable(held.during(checked), signal);
  if (misfit !== undefined) throw new ResponseFormatError(misfit, output);
}

/** The answer that completes a turn. */
export type TurnAnswer = Omit<TurnCompletedData, 'turn'>;

/** Total tokens of a turn's model calls. */
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
 * Calls the model and the requested tools until the model answers. Each tool call is recorded
 * before its result is sent to the model. Each answered model call is added to `calls`, even if the
 * run fails later. Checks the signal before each call. Throws `tool_error` after
 * `LIMITS.run.rounds` rounds without an answer.
 */
export async function runModelLoop(
  context: ModelContext & ToolCallContext,
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
    const answer = await callForRound(context, run, { round, request, calls }, signal);
    if (answer.tool_calls.length === 0) {
      await requireResponseFormat(context, run, answer.content ?? '', signal);
      const last = calls.at(-1)!;
      return {
        output: answer.content ?? '',
        ...(answer.reasoning && { reasoning: answer.reasoning }),
        tool_used: firstToolUsed(run),
        model: last.model,
        tokens: sumTokens(calls),
        finish_reason: last.finish_reason,
        duration_ms: elapsedMs(run.startedAt),
        calls: [...calls],
      };
    }
    await callTools(context, { run, round, answer, allowance }, signal);
    // The allowance counts what later rounds send of it.
    run.held.release();
  }
  throw new TurnlogError(
    'tool_error',
    `The model went on calling tools for ${LIMITS.run.rounds} rounds without an answer.`,
  );
}

/**
 * Calls the model for a round, and publishes the answer: as it arrives if the turn is read meanwhile,
 * otherwise in one piece for followers that may come.
 */
async function callForRound(
  context: ModelContext,
  { request: run, publisher, held }: OpenRun,
  { round, ...call }: Pick<FallbackCall, 'request'> & { round: number; calls: ModelCall[] },
  signal: AbortSignal,
): Promise<ChatAnswer> {
  const onDelta = (text: string): void => publisher.publishText(round, text);
  const onReasoning = (text: string): void => publisher.publishText(round, text, 'reasoning');
  const isRead = run.deltas === 'caller' || (run.deltas !== undefined && publisher.isFollowed());
  const listeners = isRead ? { onDelta, onReasoning } : {};
  const answer = await callModel(context, { run, held, ...call, ...listeners }, signal);
  if (run.deltas !== undefined && !isRead) {
    if (answer.reasoning) onReasoning(answer.reasoning);
    if (answer.content) onDelta(answer.content);
  }
  return answer;
}

/**
 * The first called function that the agent offers, because models also call functions that do not
 * exist.
 */
function firstToolUsed({ settings, turn }: OpenRun): string {
  const offered = settings.tools?.map((tool) => tool.function.name) ?? [];
  return turn.tool_calls.find(({ tool }) => offered.includes(tool))?.tool ?? '';
}
