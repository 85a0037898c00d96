import type { RecordedResponseFormat } from '../../agents/parameters.ts';

/**
 * The shapes of the chat completions API that model requests are made of. They are the provider's,
 * to the letter: the recorded request hash is taken over exactly this body.
 */
export interface ToolCallRequest {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export type ChatMessage =
  | { role: 'system' | 'user'; content: string }
  | { role: 'assistant'; content: string | null; tool_calls?: ToolCallRequest[] }
  | { role: 'tool'; content: string; tool_call_id: string };

export interface ToolDefinition {
  type: 'function';
  function: { name: string; description: string; parameters: Record<string, unknown> };
}

/** What an answer has to be. */
export type ChatResponseFormat =
  | { type: 'text' | 'json_object' }
  | {
      type: 'json_schema';
      json_schema: { name: string; schema: Record<string, unknown>; strict?: boolean };
    };

/**
 * What a request says beside its messages, as it is recorded: a JSON Schema as its text. `model` is
 * the provider's own name for it.
 */
export interface ChatSettings {
  model: string;
  max_completion_tokens?: number;
  response_format?: RecordedResponseFormat;
  temperature?: number;
  tools?: ToolDefinition[];
}

/** The body of one chat completion request. */
export type ChatRequest = Omit<ChatSettings, 'response_format'> & {
  messages: ChatMessage[];
  response_format?: ChatResponseFormat;
};
