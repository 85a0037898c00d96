import type { ToolDefinition } from '../sessions/turns/chat.ts';

export interface ToolInfo {
  name: string;
  description: string;
  /** JSON Schema of the arguments; empty for a name that stands for several tools. */
  parameters: Record<string, unknown>;
}

export interface ToolResult {
  /** Text for the model. */
  result: string;
  is_error: boolean;
}

/** What a model asks for, and for whom. */
export interface FunctionCall {
  name: string;
  /** The model's own JSON text. */
  arguments: string;
  account_id: string;
}

/** How a group is, for an operator. */
export interface GroupHealth {
  name: string;
  /** `starting` until it was tried once; `away`: its calls fail. */
  state: 'starting' | 'up' | 'away';
  /** Tools that are offered of it. */
  tools: number;
  /** Why it is away, in our own words. */
  reason?: string;
}

/**
 * The tools that agents may use. An agent names one, all those of a group (`mcp:files`), one of a
 * group (`mcp:files/read`), or several, separated by commas.
 */
export interface Toolbox {
  /** Every name that an agent may use, as far as it is known now. */
  list(): readonly ToolInfo[];
  has(names: string): boolean;
  /**
   * What a model is offered for an agent's tools. Errors: `tool_not_supported`; `tool_error`, which
   * is retriable, where nothing was heard yet of a group's tools.
   */
  definitions(names: string): Promise<ToolDefinition[]>;
  /**
   * Calls a function of the agent's tools. A failing tool, bad arguments and an unknown function are
   * results with `is_error`; it rejects only with the signal's reason when that aborts.
   */
  call(names: string, wanted: FunctionCall, signal: AbortSignal): Promise<ToolResult>;
  /** How the groups are. */
  health(): readonly GroupHealth[];
}
