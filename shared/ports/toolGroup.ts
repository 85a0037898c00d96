import type { GroupHealth, ToolInfo, ToolResult } from './toolbox.ts';

/** A tool of a group: its name there, and its definition for models. */
export interface GroupTool extends ToolInfo {
  /** The function name that a model calls: letters, digits, `_` and `-`, at most 64 characters. */
  function: string;
}

/** The account that a tool call is for, and its abort signal. */
export interface ToolCaller {
  account_id: string;
  signal: AbortSignal;
}

/** External tools under one name, such as those of an MCP server. */
export interface ToolGroup {
  /** The name of all tools together; one tool is `<name>/<tool>`. */
  name: string;
  /** The tools of the last listing; undefined before the first. */
  tools(): readonly GroupTool[] | undefined;
  /** Waits for the first listing. Errors: `tool_error`, retriable, when there is none in time. */
  known(): Promise<readonly GroupTool[]>;
  /**
   * Calls a tool by its name with arguments as JSON text. Failures are results; rejects only with the
   * abort reason.
   */
  call(tool: string, args: string, calling: ToolCaller): Promise<ToolResult>;
  health(): GroupHealth;
}
