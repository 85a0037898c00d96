import {
  Client,
  StreamableHTTPClientTransport,
  type CallToolResult,
  type Transport,
} from '@modelcontextprotocol/client';
import { LIMITS } from '../../shared/limits.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';
import { createBoundedFetch } from './boundedFetch.ts';
import { createStdioTransport } from './stdioTransport.ts';
import type { McpServer } from './server.ts';
import type { ServerTool } from './toolList.ts';

/** An open connection to a server. */
export interface Connection {
  listTools(signal: AbortSignal): Promise<readonly ServerTool[]>;
  callTool(
    name: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<CallToolResult>;
  isClosed(): boolean;
  /** Sets the listener, which is called when the connection closes or the tools have changed. */
  watch(listener: () => void): void;
  close(): Promise<void>;
}

/** A server that could not be reached, with the end of its standard error. */
export class Unreachable extends Error {
  readonly stderr: string;
  constructor(cause: unknown, stderr: string) {
    super('the server can’t be reached', { cause });
    this.stderr = stderr;
  }
}

/** Beyond the time limit of a call, for the end of its answer. */
const LAST_WORDS_MS = 5_000;
const PAGES = 8;
/** Change notices within a second are handled together. */
const CHANGES_MS = 1_000;

function transportOf({ transport, callMs }: McpServer): Transport & { lastWords?(): string } {
  if (transport.kind === 'process') return createStdioTransport(transport);
  const { url, headers } = transport;
  const longest = Math.max(callMs, LIMITS.mcp.connectMs) + LAST_WORDS_MS;
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: createBoundedFetch(longest),
  });
}

/**
 * Starts or connects a server. Results become text for a model, so they are not validated against the
 * output schema of the server. Throws Unreachable.
 */
export async function connect(
  server: McpServer,
  version: string,
  signal: AbortSignal,
): Promise<Connection> {
  const { connectMs, listMs } = LIMITS.mcp;
  const transport = transportOf(server);
  let closed = false;
  let listener: (() => void) | undefined;
  const onClosed = (): void => {
    closed = true;
    listener?.();
  };
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
      listMaxPages: PAGES,
      listChanged: {
        tools: { autoRefresh: false, debounceMs: CHANGES_MS, onChanged: () => listener?.() },
      },
    },
  );
  // The library offers no other notification.
  Object.assign(client, { onclose: onClosed });
  const close = async (): Promise<void> => {
    const { closeMs } = LIMITS.mcp;
    if (transport instanceof StreamableHTTPClientTransport)
      await resolvesWithin(transport.terminateSession(), closeMs).catch(() => false);
    await resolvesWithin(client.close(), closeMs).catch(() => false);
    await transport.close();
  };
  try {
    await client.connect(transport, { timeout: connectMs, maxTotalTimeout: connectMs, signal });
  } catch (error) {
    await close();
    throw new Unreachable(error, transport.lastWords?.() ?? '');
  }
  return {
    async listTools(stop) {
      const options = { timeout: listMs, maxTotalTimeout: listMs, signal: stop };
      const { tools } = await client.listTools(undefined, { ...options, cacheMode: 'bypass' });
      return tools;
    },
    callTool(name, args, stop) {
      const { callMs } = server;
      const options = { timeout: callMs, maxTotalTimeout: callMs, signal: stop };
      return client.callTool({ name, arguments: args }, options);
    },
    isClosed: () => closed,
    watch: (next) => void (listener = next),
    close,
  };
}
