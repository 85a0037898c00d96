import type { ChatRequest, ToolCallRequest } from '../sessions/turns/chat.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import type { Tokens } from '../domain/schema.ts';
import type { Price } from '../usage/cost.ts';

export interface ChatAnswer {
  /** The provider's id of the answer, empty when it sent none. */
  response_id: string;
  /** The model as the provider reported it. */
  model: string;
  content: string | null;
  tool_calls: ToolCallRequest[];
  finish_reason: string;
  /** Undefined when the provider reported no usage. */
  tokens: Tokens | undefined;
}

/** A model that an agent may name; reached at an OpenAI-compatible server. */
export interface ModelInfo {
  id: string;
  provider: string;
  upstream_model: string;
  /** Tokens that the prompt and the answer share. */
  context_window: number;
  max_output_tokens?: number;
  /** Ids of the models to ask, in this order, where this one is in trouble. */
  fallbacks?: string[];
  price?: Price;
}

/** This process has no room for an answer: its provider has done nothing wrong. */
export class NoRoomForAnswer extends TurnlogError {
  constructor() {
    super('model_overloaded', 'Too many long answers of models are being read.', {
      retriable: true,
      retryAfterSeconds: 1,
    });
  }
}

/**
 * True where a model, or the way to it, is in trouble: it gave no answer, took too long, or has too
 * much to do, and nothing is wrong with the request.
 */
export const isModelTrouble = (error: unknown): error is TurnlogError =>
  isTurnlogError(error) &&
  !(error instanceof NoRoomForAnswer) &&
  (error.code === 'model_overloaded' ||
    error.code === 'model_timeout' ||
    (error.code === 'model_error' && error.retriable));

export interface ChatModels {
  /** The configured models, in the order of the configuration. */
  list(): readonly ModelInfo[];
  find(id: string): ModelInfo | undefined;
  /** Providers that nothing is sent to now, where they are looked after. */
  openCircuits?(): readonly string[];
  /**
   * One call, with the provider's retries inside and a time limit per attempt. With `onDelta` the
   * provider is asked for a stream, and `onDelta` told of the answer's text as it comes: together its
   * pieces are `content`, and none parts a character. Nothing is repeated once it was called.
   * Errors: `model_error`, `model_overloaded` (retriable, with `retryAfterSeconds`),
   * `model_timeout`; when `signal` aborts, its reason is thrown.
   */
  complete(
    modelId: string,
    request: ChatRequest,
    signal: AbortSignal,
    onDelta?: (text: string) => void,
  ): Promise<ChatAnswer>;
}
