import type { ToolDefinition } from '../sessions/turns/chat.ts';

export interface ToolInfo {
  name: string;
  description: string;
  /** JSON Schema of the arguments; empty for a name of several tools. */
  parameters: Record<string, unknown>;
}

export interface ToolResult {
  /** Text for the model. */
  result: string;
  is_error: boolean;
}

/** A function call by a model, and its account. */
export interface FunctionCall {
  name: string;
  /** JSON text from the model. */
  arguments: string;
  account_id: string;
}

/** The state of a group, for operators. */
export interface GroupHealth {
  name: string;
  /** `starting` until the first attempt; `away` while its calls fail. */
  state: 'starting' | 'up' | 'away';
  /** The number of tools offered. */
  tools: number;
  /** Why it is unavailable; never the server's own text. */
  reason?: string;
  /** Says that there is no memory for its list of tools, and names tools that are not offered or gave invalid content last. */
  problems?: string[];
}

/**
 * The tools that agents may use. An agent names one, all those of a group (`mcp:files`), one of a
 * group (`mcp:files/read`), or several, separated by commas.
 */
export interface Toolbox {
  /** All names that agents may use, as far as known. */
  list(): readonly ToolInfo[];
  /** The entry of the list with this name; undefined if there is none now. */
  find(name: string): ToolInfo | undefined;
  /** The first of the names that agents may not use; undefined if they may use all. */
  findUnsupported(names: string): string | undefined;
  /**
   * The function definitions of an agent's tools. Errors: `tool_not_supported`; `tool_error`,
   * retriable, when a group's tools are not known yet.
   */
  definitions(names: string): Promise<ToolDefinition[]>;
  /**
   * Calls a function of the agent's tools. Failures, bad arguments and unknown functions are
   * results with `is_error`; rejects only with the abort reason.
   */
  call(names: string, wanted: FunctionCall, signal: AbortSignal): Promise<ToolResult>;
  /** The state of all groups. */
  health(): readonly GroupHealth[];
}
