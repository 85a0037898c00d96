import {
  Client,
  StreamableHTTPClientTransport,
  type CallToolResult,
  type Transport,
} from '@modelcontextprotocol/client';
import { LIMITS } from '../../shared/limits.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';
import { createBoundedFetch } from './boundedFetch.ts';
import { createProcessTransport } from './processTransport.ts';
import type { McpServer } from './server.ts';
import type { ToldTool } from './toolList.ts';

/** A server that has answered. */
export interface Connection {
  /** Errors: those of the server, and where it takes too long. */
  listTools(signal: AbortSignal): Promise<readonly ToldTool[]>;
  callTool(
    name: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<CallToolResult>;
  isClosed(): boolean;
  /** Calls the one listener when the server is gone, and when it says that its tools have changed. */
  watch(listener: () => void): void;
  close(): Promise<void>;
}

/** A server that could not be reached, with what it has said of itself, if anything. */
export class Unreachable extends Error {
  readonly said: string;
  constructor(cause: unknown, said: string) {
    super('the server can’t be reached', { cause });
    this.said = said;
  }
}

/** Beyond a call's own time: for its answer to come to an end. */
const LAST_WORDS_MS = 5_000;
const PAGES = 8;
/** A server that says again and again that its tools have changed is looked at once a second. */
const CHANGES_MS = 1_000;

function transportOf({ transport, callMs }: McpServer): Transport & { lastWords?(): string } {
  if (transport.kind === 'process') return createProcessTransport(transport);
  const { url, headers } = transport;
  const longest = Math.max(callMs, LIMITS.mcp.connectMs) + LAST_WORDS_MS;
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: createBoundedFetch(longest),
  });
}

/**
 * Starts or calls a server. Results are text for a model here, so what a server claims about their
 * structure is not compared. Errors: Unreachable.
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
  // The library has no other way to hear of it.
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
