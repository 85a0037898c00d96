import type { GroupHealth, ToolInfo, ToolResult } from './toolbox.ts';

/** A tool of a group: its own name there, and what a model is offered. */
export interface GroupTool extends ToolInfo {
  /** The function's name, as a model calls it: letters, digits, `_` and `-`, 64 at the most. */
  function: string;
}

/** Whom a tool works for, and what ends that. */
export interface Calling {
  account_id: string;
  signal: AbortSignal;
}

/** Tools that somebody else serves, such as an MCP server, under one name. */
export interface ToolGroup {
  /** As an agent names all of them; one of them is `<name>/<tool>`. */
  name: string;
  /** Those that were heard of last; undefined before the first time. */
  tools(): readonly GroupTool[] | undefined;
  /**
   * The same, after a wait for the first time. Errors: `tool_error`, retriable, where nothing is
   * heard in time.
   */
  known(): Promise<readonly GroupTool[]>;
  /** Calls a tool by its own name. Every failure is a result; rejects with the signal's reason. */
  call(tool: string, args: unknown, calling: Calling): Promise<ToolResult>;
  health(): GroupHealth;
}
