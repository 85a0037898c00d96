import type { ToolDefinition } from '../domain/session/chat.ts';

export interface ToolInfo {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
}

export interface ToolResult {
  /** Text for the model. */
  result: string;
  is_error: boolean;
}

export interface Toolbox {
  /** Every configured tool, by name. */
  list(): readonly ToolInfo[];
  has(name: string): boolean;
  /** What a model is offered for an agent's tool. Errors: `tool_not_supported`. */
  definitions(name: string): Promise<ToolDefinition[]>;
  /**
   * Calls a function of the agent's tool. `args` is the model's own JSON text. A failing tool, bad
   * arguments and an unknown function are results with `is_error`; it rejects only with the
   * signal's reason when that aborts.
   */
  call(tool: string, functionName: string, args: string, signal: AbortSignal): Promise<ToolResult>;
}
