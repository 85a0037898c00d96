import { ProtocolError, SdkError, SdkErrorCode } from '@modelcontextprotocol/client';
import { createFairSemaphore } from '../../shared/lib/concurrency/fairSemaphore.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { Calling, ToolGroup } from '../../shared/ports/toolGroup.ts';
import type { ToolResult } from '../../shared/ports/toolbox.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';
import type { Connection } from './connection.ts';
import { resultText } from './resultText.ts';
import type { McpServer } from './server.ts';
import { isTimeout, supervise } from './supervise.ts';
import type { ListedTool } from './toolList.ts';

/** A server's tools, until they are closed. */
export interface McpGroup extends ToolGroup {
  close(): Promise<void>;
}

const failed = (result: string): ToolResult => ({ result, is_error: true });

/** What a call came to that the server did not answer. What a server says is for the model. */
function sentenceOn(error: unknown, { callMs }: McpServer): string {
  if (error instanceof ProtocolError) return `The server refuses the call: ${error.message}`;
  if (isTimeout(error))
    return `The server did not answer within ${callMs / 1_000} s. Whether it did something is not known.`;
  if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)
    return 'The server’s answer is not valid.';
  return 'The server went away during the call. Whether it did something is not known.';
}

const unheard = (name: string): TurnlogError =>
  new TurnlogError('tool_error', `The tools of ${name} are not known yet: it does not answer.`, {
    retriable: true,
    retryAfterSeconds: 5,
  });

/**
 * The tools of an MCP server, which is started or called at once, and again whenever it is lost. Its
 * tools are known from its last list; while it is away, calls are answered with an error. No call is
 * made twice.
 */
export function createMcpGroup(
  server: McpServer,
  { logger, version }: { logger: Logger; version: string },
): McpGroup {
  const { calls, callsOfAccount, callWaitMs, firstListMs } = LIMITS.mcp;
  const name = `mcp:${server.name}`;
  const line = createFairSemaphore(
    { permits: calls, bytes: Infinity },
    { permits: callsOfAccount, bytes: Infinity },
  );
  const watched = supervise(server, { logger, version, isBusy: () => line.activeCount() > 0 });

  async function make(
    connection: Connection,
    { name: tool }: ListedTool,
    args: unknown,
    { account_id, signal }: Calling,
  ): Promise<ToolResult> {
    const place = await line.acquire({ account_id, bytes: 0 }, { waitMs: callWaitMs, signal });
    try {
      const told = args as Record<string, unknown>;
      return resultText(await connection.callTool(tool, told, signal));
    } finally {
      place.release();
    }
  }

  return {
    name,
    tools: watched.tools,
    async known() {
      await resolvesWithin(watched.heard, watched.tools() ? 0 : firstListMs);
      const tools = watched.tools();
      if (!tools) throw unheard(name);
      return tools;
    },
    async call(tool, args, calling) {
      const listed = watched.tools()?.find((each) => each.name === tool);
      if (!listed) return failed(`The server ${server.name} has no tool ${tool} any more.`);
      const problem = listed.check(args);
      if (problem !== undefined)
        return failed(
          `The arguments of ${listed.function} do not fit: ${problem}. Their JSON Schema: ${JSON.stringify(listed.parameters)}`,
        );
      const connection = watched.connection();
      if (!connection) return failed(`The server ${server.name} is away at the moment.`);
      try {
        return await make(connection, listed, args, calling);
      } catch (error) {
        calling.signal.throwIfAborted();
        if (error instanceof TurnlogError) return failed(error.message);
        // A session that a server has forgotten fails each of its calls.
        if (!(error instanceof ProtocolError) && !isTimeout(error)) watched.look();
        return failed(sentenceOn(error, server));
      }
    },
    health() {
      const { state, reason } = watched.health();
      const tools = watched.tools()?.length ?? 0;
      return { name: server.name, state, tools, ...(reason !== undefined && { reason }) };
    },
    close: watched.close,
  };
}
