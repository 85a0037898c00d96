import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  type CallToolResult,
} from '@modelcontextprotocol/client';
import { createFairSemaphore } from '../../shared/lib/concurrency/fairSemaphore.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { Calling, ToolGroup } from '../../shared/ports/toolGroup.ts';
import type { ToolResult } from '../../shared/ports/toolbox.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';
import type { McpConnection } from './connection.ts';
import type { McpServer } from './server.ts';
import { isTimeout, supervise } from './supervise.ts';
import type { ListedTool } from './toolList.ts';

/** The tools of one MCP server. */
export interface McpGroup extends ToolGroup {
  close(): Promise<void>;
}

type Part = CallToolResult['content'][number];

const bytesOf = (base64: string): number => Buffer.byteLength(base64, 'base64');

/** Other content than text is named, so that the model knows of it. */
function partText(part: Part): string {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'image':
    case 'audio':
      return `[${part.type}, ${part.mimeType}, ${bytesOf(part.data)} bytes]`;
    case 'resource_link':
      return `[resource ${part.uri}]`;
    case 'resource': {
      const { resource } = part;
      return 'text' in resource
        ? resource.text
        : `[resource ${resource.uri}, ${bytesOf(resource.blob)} bytes]`;
    }
    default:
      return '[something that is no text]';
  }
}

/** A server's result as text for a model: its parts, or its structured content without parts. */
function resultText({ content, structuredContent, isError }: CallToolResult): ToolResult {
  const parts = content.map(partText);
  if (parts.length === 0 && structuredContent !== undefined)
    parts.push(JSON.stringify(structuredContent));
  return { result: parts.join('\n') || '(no content)', is_error: isError === true };
}

const failed = (result: string): ToolResult => ({ result, is_error: true });

/** The failure of a call as text for the model. */
function failureText(error: unknown, { callMs }: McpServer): string {
  if (error instanceof ProtocolError) return `The server refuses the call: ${error.message}`;
  if (isTimeout(error))
    return `The server did not answer within ${callMs / 1_000} s. Whether it did something is not known.`;
  if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)
    return 'The server’s answer is not valid.';
  return 'The server went away during the call. Whether it did something is not known.';
}

const toolsUnknownError = (name: string): TurnlogError =>
  new TurnlogError('tool_error', `The tools of ${name} are not known yet: it does not answer.`, {
    retriable: true,
    retryAfterSeconds: 5,
  });

/**
 * The tools of an MCP server. The server is started or connected at once, and again after each loss.
 * Its tools are those of its last list. Calls fail while the server is away, and are never repeated.
 */
export function createMcpGroup(
  server: McpServer,
  { logger, version }: { logger: Logger; version: string },
): McpGroup {
  const { calls, callsOfAccount, callWaitMs, firstListMs } = LIMITS.mcp;
  const name = `mcp:${server.name}`;
  const semaphore = createFairSemaphore(
    'mcp_calls',
    { permits: calls, bytes: Infinity },
    { permits: callsOfAccount, bytes: Infinity },
  );
  const supervised = supervise(server, {
    logger,
    version,
    isBusy: () => semaphore.activeCount() > 0,
  });

  async function callTool(
    connection: McpConnection,
    { name: tool }: ListedTool,
    args: unknown,
    { account_id, signal }: Calling,
  ): Promise<ToolResult> {
    const permit = await semaphore.acquire(
      { account_id, bytes: 0 },
      { waitMs: callWaitMs, signal },
    );
    try {
      return resultText(await connection.callTool(tool, args as Record<string, unknown>, signal));
    } finally {
      permit.release();
    }
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
      const problem = listed.check(args);
      if (problem !== undefined)
        return failed(
          `The arguments of ${listed.function} do not fit: ${problem}. Their JSON Schema: ${JSON.stringify(listed.parameters)}`,
        );
      const connection = supervised.connection();
      if (!connection) return failed(`The server ${server.name} is away at the moment.`);
      try {
        return await callTool(connection, listed, args, calling);
      } catch (error) {
        calling.signal.throwIfAborted();
        if (error instanceof TurnlogError) return failed(error.message);
        // Every call in a session that the server has forgotten fails, so check the connection.
        if (!(error instanceof ProtocolError) && !isTimeout(error)) supervised.checkNow();
        return failed(failureText(error, server));
      }
    },
    health() {
      const { state, reason } = supervised.health();
      const tools = supervised.tools()?.length ?? 0;
      return { name: server.name, state, tools, ...(reason !== undefined && { reason }) };
    },
    close: supervised.close,
  };
}
