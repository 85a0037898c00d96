import type { ChatRequest, ToolCallRequest } from '../domain/session/chat.ts';
import type { Tokens } from '../domain/schema.ts';

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
}

export interface ChatModels {
  /** The configured models, in the order of the configuration. */
  list(): readonly ModelInfo[];
  find(id: string): ModelInfo | undefined;
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
