import type { RecordedResponseFormat } from '../../agents/parameters.ts';

/**
 * Types of the chat completions API for model requests. They follow the provider's format, because the
 * recorded request hash covers exactly the body. Parts that events hold as JSON text are text here as well.
 */
export interface ToolCallRequest {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
  /** The provider's own fields of the call, as JSON: a ToolCallExtra. */
  extra?: string;
}

/** A provider's own fields of a tool call, which it expects to get back with the call. */
export interface ToolCallExtra {
  [field: string]: unknown;
  /** Fields beside `name` and `arguments`. */
  function?: Record<string, unknown>;
}

export type ChatMessage =
  | { role: 'system' | 'developer' | 'user'; content: string }
  | {
      role: 'assistant';
      content: string | null;
      reasoning_content?: string;
      tool_calls?: ToolCallRequest[];
    }
  | { role: 'tool'; content: string; tool_call_id: string };

export interface ToolDefinition {
  type: 'function';
  function: { name: string; description: string; parameters: Record<string, unknown> };
}

/** The required format of an answer, as clients and providers have it. */
export type ChatResponseFormat =
  | { type: 'text' | 'json_object' }
  | {
      type: 'json_schema';
      json_schema: { name: string; schema: Record<string, unknown>; strict?: boolean };
    };

/**
 * The parts of a request beside its messages, as recorded. A JSON Schema is recorded as its text.
 * `model` is the provider's name of the model.
 */
export interface ChatSettings {
  model: string;
  max_completion_tokens?: number;
  response_format?: RecordedResponseFormat;
  temperature?: number;
  tools?: ToolDefinition[];
}

/** One chat completion request, from which `requestBody` makes the body. */
export type ChatRequest = ChatSettings & {
  messages: ChatMessage[];
  /** In place of `max_completion_tokens`, for servers that do not know that field. */
  max_tokens?: number;
};
