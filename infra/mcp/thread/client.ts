import {
  Client,
  SdkError,
  SdkErrorCode,
  StreamableHTTPClientTransport,
  type CallToolResult,
  type JSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/client';
import { KIB, MIB } from '../../../shared/lib/units.ts';
import { RUN_LIMITS } from '../../../shared/runs/limits.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import type { McpServer } from '../server.ts';
import { createBoundedFetch } from './boundedFetch.ts';
import type { ServerTool } from './describedTools.ts';
import { createInflow, type Inflow } from './inflow.ts';
import { createMessageRepair, type MalformedTool } from './malformed.ts';
import { createStdioTransport } from './stdioTransport.ts';

/** A connection to a server. */
export interface McpClient {
  open(signal: AbortSignal): Promise<void>;
  /** The end of the server's standard error. */
  lastWords(): string;
  /** Whether the server has given the connection a session. */
  hasSession(): boolean;
  /** The pages of the list. None is kept, because all of them together may be large. */
  listTools(signal: AbortSignal): AsyncIterable<readonly (ServerTool | MalformedTool)[]>;
  callTool(tool: string, args: string, signal: AbortSignal): Promise<CallToolResult>;
  close(): Promise<void>;
}

interface ClientEvents {
  onChanged: () => void;
  /** The connection has ended, or ends because the server sent too much. */
  onClosed: (reason: string, discardedLogs: number) => void;
}

/** Beyond the time limit of a call, for the end of its answer. */
const LAST_WORDS_MS = 5_000;
const PAGES = 8;
/** Change notices within a second are handled together. */
const CHANGES_MS = 1_000;
/** The longest id of a server's request, which its reply repeats. */
const ID_CHARS = KIB;
/** Memory of the replies that a server has not answered, each of which is an HTTP request. */
const REPLIES_BYTES = MIB;
const REPLY_BYTES = 4 * KIB;

function transportOf(
  { transport, callMs }: McpServer,
  inflow: Inflow,
): Transport & { lastWords?(): string } {
  const longest = Math.max(callMs, RUN_LIMITS.mcp.connectMs) + LAST_WORDS_MS;
  if (transport.kind === 'process') return createStdioTransport(transport, inflow, longest);
  const { url, headers } = transport;
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: createBoundedFetch(longest, inflow),
  });
}

type Send = Transport['send'];

/** Sends messages. A server that lets too many replies wait is disconnected. */
function limitReplies(send: Send, inflow: Inflow): Send {
  let pendingBytes = 0;
  return async (message, options) => {
    if ('method' in message) return send(message, options);
    const bytes = REPLY_BYTES + Buffer.byteLength(JSON.stringify(message));
    pendingBytes += bytes;
    try {
      if (pendingBytes > REPLIES_BYTES) inflow.exceed('it does not accept replies to its requests');
      else await send(message, options);
    } finally {
      pendingBytes -= bytes;
    }
  };
}

/**
 * A client of a server, which is started or connected by `open`. A server that sends too much is
 * disconnected. Results become text for a model, so they are not validated against the output
 * schema of the server.
 */
export function createMcpClient(
  server: McpServer,
  version: string,
  { onChanged, onClosed }: ClientEvents,
): McpClient {
  const { connectMs, listMs, closeMs } = RUN_LIMITS.mcp;
  const { callMs } = server;
  const inflow = createInflow((reason) => {
    onClosed(reason, inflow.discardedLogs());
    void close();
  });
  const transport = transportOf(server, inflow);
  const repairs = createMessageRepair();
  const send = limitReplies(transport.send.bind(transport), inflow);
  Object.assign(transport, {
    // The library calls a listener that is set before it connects first.
    onmessage(message: JSONRPCMessage) {
      if ('method' in message && 'id' in message && String(message.id).length > ID_CHARS)
        inflow.exceed('it sent a request with too long an id');
      repairs.repair(message);
    },
    send: (...[message, options]: Parameters<Send>) => {
      [message].flat().forEach(repairs.noteSent);
      return send(message, options);
    },
  });
  const client = new Client(
    { name: 'turnlog', version },
    {
      jsonSchemaValidator: {
        getValidator: () => (input) => ({
          valid: true,
          data: input as never,
          errorMessage: undefined,
        }),
      },
      listChanged: { tools: { autoRefresh: false, debounceMs: CHANGES_MS, onChanged } },
    },
  );
  // The library offers no other notification.
  Object.assign(client, { onclose: () => onClosed('it has ended', inflow.discardedLogs()) });

  async function close(): Promise<void> {
    if (transport instanceof StreamableHTTPClientTransport)
      await resolvesWithin(transport.terminateSession(), closeMs).catch(() => false);
    await resolvesWithin(client.close(), closeMs).catch(() => false);
    await transport.close();
  }

  return {
    open: (signal) =>
      client.connect(transport, { timeout: connectMs, maxTotalTimeout: connectMs, signal }),
    lastWords: () => transport.lastWords?.() ?? '',
    hasSession: () => transport.sessionId !== undefined,
    async *listTools(signal) {
      if (!client.getServerCapabilities()?.tools) return;
      const options = { timeout: listMs, maxTotalTimeout: listMs, signal };
      const endListing = inflow.startListing();
      try {
        let params: { cursor: string } | undefined;
        // Answers to calls may have had a list, too.
        repairs.takeMalformed();
        for (let page = 0; page < PAGES; page += 1) {
          const listed = await client.request(
            { method: 'tools/list', ...(params && { params }) },
            options,
          );
          yield [...listed.tools, ...repairs.takeMalformed()];
          const { nextCursor: cursor } = listed;
          if (cursor === undefined || cursor === params?.cursor) return;
          params = { cursor };
        }
        throw new SdkError(SdkErrorCode.ListPaginationExceeded, 'The list has too many pages.');
      } finally {
        endListing();
      }
    },
    callTool(name, args, signal) {
      const options = { timeout: callMs, maxTotalTimeout: callMs, signal };
      return client.callTool({ name, arguments: JSON.parse(args) }, options);
    },
    close,
  };
}
