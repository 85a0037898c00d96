import { abortable } from '../../shared/lib/concurrency/abortable.ts';
import { createFairSemaphore } from '../../shared/lib/concurrency/fairSemaphore.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ToolCaller, ToolGroup } from '../../shared/ports/toolGroup.ts';
import type { ToolResult } from '../../shared/ports/toolbox.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';
import { McpFailure } from './messages.ts';
import type { McpServer } from './server.ts';
import { supervise, type McpResources } from './supervise.ts';
import type { ListedTool } from './toolList.ts';

/** The tools of one MCP server. */
export interface McpGroup extends ToolGroup {
  close(): Promise<void>;
}

const failed = (result: string): ToolResult => ({ result, is_error: true });

/** The failure of a call as text for the model. */
const failureText = ({ kind, quote }: McpFailure, { callMs }: McpServer): string =>
  ({
    refused: `The server refuses the call: ${quote}`,
    timeout: `The server did not answer within ${callMs / 1_000} s. Whether it did something is not known.`,
    invalid: `The server’s answer is not valid${quote && ` (${quote})`}. Whether it did something is not known.`,
    forgotten:
      'The server has forgotten the session and did not make the call. Try again in a few seconds.',
    lost: 'The server went away during the call. Whether it did something is not known.',
  })[kind];

const toolsUnknownError = (name: string): TurnlogError =>
  new TurnlogError(
    'tool_error',
    `The tools of ${name} are not known yet: it does not answer, or memory is short.`,
    {
      retriable: true,
      retryAfterSeconds: 5,
    },
  );

/**
 * The tools of an MCP server. The server is started or connected at once, and again after each loss.
 * Its tools are those of its last list. Calls fail while the server is unavailable, and are never repeated.
 */
export function createMcpGroup(server: McpServer, resources: McpResources): McpGroup {
  const { calls, callsOfAccount, callWaitMs, firstListMs } = LIMITS.mcp;
  const name = `mcp:${server.name}`;
  const away = failed(`The server ${server.name} is away at the moment.`);
  const semaphore = createFairSemaphore(
    'mcp_calls',
    { permits: calls, bytes: Infinity },
    { permits: callsOfAccount, bytes: Infinity },
  );
  const supervised = supervise(server, resources);

  async function callTool(
    { tool, args }: { tool: string; args: string },
    { account_id, signal }: ToolCaller,
  ): Promise<ToolResult> {
    using _permit = await semaphore.acquire({ account_id }, { waitMs: callWaitMs, signal });
    const connection = supervised.connection();
    if (!connection || connection.end()) return away;
    const { invalidItems, ...result } = await connection.callTool(tool, args, signal);
    supervised.noteAnswer(tool, invalidItems);
    return result;
  }

  /** The problem of arguments; undefined where they are valid. */
  async function problemOf(
    schema: string,
    args: string,
    { account_id, signal }: ToolCaller,
  ): Promise<string | undefined> {
    if (!args.startsWith('{')) return 'they must be a JSON object';
    return abortable(resources.schemas.argumentsProblemOf(schema, args, account_id), signal);
  }

  async function call(
    { function: wanted, name: tool, schema }: ListedTool,
    args: string,
    calling: ToolCaller,
  ): Promise<ToolResult> {
    const problem = await problemOf(schema, args, calling);
    if (problem !== undefined)
      return failed(
        `The arguments of ${wanted} do not fit: ${problem}. Their JSON Schema: ${schema}`,
      );
    if (!supervised.connection()) return away;
    return callTool({ tool, args }, calling);
  }

  return {
    name,
    tools: supervised.tools,
    async known() {
      await resolvesWithin(supervised.firstListed, supervised.tools() ? 0 : firstListMs);
      const tools = supervised.tools();
      if (!tools) throw toolsUnknownError(name);
      return tools;
    },
    async call(tool, args, calling) {
      const listed = supervised.tools()?.find((each) => each.name === tool);
      if (!listed) return failed(`The server ${server.name} has no tool ${tool} any more.`);
      try {
        return await call(listed, args, calling);
      } catch (error) {
        calling.signal.throwIfAborted();
        if (error instanceof TurnlogError) return failed(error.message);
        if (!(error instanceof McpFailure)) throw error;
        // Each call may fail like this until there is another connection, so check this one.
        if (error.kind === 'lost' || error.kind === 'invalid') supervised.checkSoon();
        return failed(failureText(error, server));
      }
    },
    health() {
      const tools = supervised.tools()?.length ?? 0;
      const { state, ...others } = supervised.health();
      return { name: server.name, state, tools, ...others };
    },
    close: supervised.close,
  };
}
