import type { ChatRequest } from '../../sessions/turns/chat.ts';
import type { FallbackModel, ModelCall } from '../../sessions/turns/promptParts.ts';
import { fallbackRequest } from '../../sessions/turns/prompt.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { isModelTrouble, type ChatAnswer, type ModelInfo } from '../../ports/chatModel.ts';
import type { ModelContext } from '../context.ts';
import { fitsContext } from './contextWindow.ts';
import type { RunRequest } from '../runRequest.ts';

/** What a model is asked within a turn. */
export interface FallbackCall {
  run: RunRequest;
  request: ChatRequest;
  /** Those of the turn that were answered before. */
  calls: readonly ModelCall[];
  /** Is told what the model says, as it comes. */
  onDelta?: ((text: string) => void) | undefined;
}

/** An answer, the request that was really sent for it, and to whom, where to another model. */
export interface Completion {
  answer: ChatAnswer;
  request: ChatRequest;
  fallback: FallbackModel | undefined;
}

function fallbackModel({ id, upstream_model, max_output_tokens }: ModelInfo, own?: number) {
  const limits = [own, max_output_tokens].filter((limit) => limit !== undefined);
  return {
    model: id,
    upstream_model,
    ...(limits.length > 0 && { max_completion_tokens: Math.min(...limits) }),
  };
}

/**
 * Asks the agent's model or, where that is in trouble, its fallbacks in their order, as far as the
 * prompt fits them. Once something of an answer was shown or recorded, whoever gave it goes on alone.
 * Errors: those of the model that was asked first.
 */
export async function completeWithFallbacks(
  { catalogue: { models }, budget }: ModelContext,
  { run: { agent, actor, replay }, request, calls, onDelta }: FallbackCall,
  signal: AbortSignal,
): Promise<Completion> {
  let shown = false;
  const show =
    onDelta &&
    ((text: string): void => {
      shown = true;
      onDelta(text);
    });
  const ask = async (fallback: FallbackModel | undefined): Promise<Completion> => {
    const sent = fallback ? fallbackRequest(fallback, request) : request;
    const answer = await models.complete(fallback?.model ?? agent.model, sent, signal, show);
    return { answer, request: sent, fallback };
  };
  const last = calls.at(-1);
  if (last) return ask(last.fallback);
  const recorded = replay?.fallback;
  if (recorded && models.find(recorded.model)) return ask(recorded);
  try {
    return await ask(undefined);
  } catch (error) {
    if (shown || !isModelTrouble(error)) throw error;
    for (const id of models.find(agent.model)?.fallbacks ?? []) {
      signal.throwIfAborted();
      const other = models.find(id)!;
      if (!(await fitsContext(budget, other, { agent, actor, request }))) continue;
      const fallback = fallbackModel(other, agent.parameters?.max_output_tokens);
      const answered = await ask(fallback).catch((failure: unknown) => {
        signal.throwIfAborted();
        if (shown || !isTurnlogError(failure)) throw failure;
      });
      if (answered) return answered;
    }
    throw error;
  }
}
