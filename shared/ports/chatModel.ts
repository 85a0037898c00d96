import type { ChatRequest, ToolCallRequest } from '../sessions/turns/chat.ts';
import type { FormedRequest } from '../sessions/turns/requestForm.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import type { Tokens } from '../domain/schema.ts';
import type { Price } from '../usage/cost.ts';

export interface ChatAnswer {
  /** The provider's id of the answer, empty when it sent none. */
  response_id: string;
  /** The model as the provider reported it. */
  model: string;
  /** Null when the model said nothing; the answer may then have no tool calls either. */
  content: string | null;
  /** The model's reasoning, where the provider sends it. */
  reasoning?: string;
  tool_calls: ToolCallRequest[];
  finish_reason: string;
  /** Undefined when the provider reported no usage. */
  tokens: Tokens | undefined;
  /** The request as sent, where the server does not accept the standard form. */
  sent?: Required<FormedRequest>;
}

/** A model that an agent may name; reached at an OpenAI-compatible server. */
export interface ModelInfo {
  id: string;
  provider: string;
  upstream_model: string;
  /** Tokens shared by prompt and completion. */
  context_window: number;
  max_output_tokens?: number;
  /** Ids of the models to try, in this order, when this one fails. */
  fallbacks?: string[];
  price?: Price;
}

/** This process has no memory for another answer; the provider did not fail. */
export class NoRoomForAnswer extends TurnlogError {
  constructor() {
    super('model_overloaded', 'Too many long answers of models are being read.', {
      retriable: true,
      retryAfterSeconds: 1,
    });
  }
}

/**
 * True when a model or the connection to it fails: no answer, a timeout or overload, with nothing
 * wrong in the request.
 */
export const isModelTrouble = (error: unknown): error is TurnlogError =>
  isTurnlogError(error) &&
  !(error instanceof NoRoomForAnswer) &&
  (error.code === 'model_overloaded' ||
    error.code === 'model_timeout' ||
    (error.code === 'model_error' && error.retriable));

/** For whom a call is made. */
export interface ModelCaller {
  /** The account of the run. Accounts share the memory for answers, and take turns at reading them. */
  account_id: string;
  /** Receives the text as it arrives, in pieces that never split a character. */
  onDelta?: (text: string) => void;
  /** With `onDelta`: receives the reasoning in the same way. */
  onReasoning?: ((text: string) => void) | undefined;
  /**
   * Takes over the memory that is reserved for an answer, to release it once the answer is recorded.
   * Also called for an answer that then turns out to be unusable.
   */
  hold?: (release: () => void) => void;
}

export interface ChatModels {
  /** The configured models, in the order of the configuration. */
  list(): readonly ModelInfo[];
  find(id: string): ModelInfo | undefined;
  /** True while a provider's first list is awaited: it may have models that `find` does not know yet. */
  awaitsList?(): boolean;
  /** Providers whose last calls failed, and that a circuit breaker does not call for now. */
  openCircuits?(): readonly string[];
  /**
   * Makes one call, with the provider's retries and a time limit per attempt. With `onDelta`
   * the answer is streamed; its pieces together are `content`, and after the first one nothing is
   * retried. A request is sent in the form that the provider accepts: the answer then has `sent`.
   * Errors: `model_error`, `model_overloaded` (retriable, with `retryAfterSeconds`),
   * `model_timeout`, the abort reason.
   */
  complete(
    modelId: string,
    request: ChatRequest,
    signal: AbortSignal,
    caller: ModelCaller,
  ): Promise<ChatAnswer>;
}
