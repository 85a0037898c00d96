/** How a server is reached. */
export type McpTransport =
  | {
      kind: 'process';
      command: string;
      args: readonly string[];
      /** All that the process is given. */
      env: Readonly<Record<string, string>>;
      cwd: string | undefined;
    }
  | { kind: 'http'; url: string; headers: Readonly<Record<string, string>> };

/** An MCP server that an operator has named. */
export interface McpServer {
  /** Small letters, digits and hyphens. */
  name: string;
  transport: McpTransport;
  /** The tools that are offered of it; all where undefined. */
  tools: readonly string[] | undefined;
  /** How long one call may take. */
  callMs: number;
}
