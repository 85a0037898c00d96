import { SdkError, SdkErrorCode } from '@modelcontextprotocol/client';
import { createBackoff } from '../../shared/lib/time/backoff.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import { sleepUntilAborted } from '../../shared/lib/time/sleep.ts';
import type { GroupHealth } from '../../shared/ports/toolbox.ts';
import { connect, Unreachable, type Connection } from './connection.ts';
import type { McpServer } from './server.ts';
import { readToolList, type ListedTool } from './toolList.ts';

/** A server whose connection is re-established after each loss. */
interface Supervised {
  tools(): readonly ListedTool[] | undefined;
  /** Resolves with the first list of tools. */
  firstListed: Promise<void>;
  /** Undefined while it is away. */
  connection(): Connection | undefined;
  health(): Pick<GroupHealth, 'state' | 'reason'>;
  /** Checks the connection now. */
  checkNow(): void;
  close(): Promise<void>;
}

const FIRST_PAUSE_MS = 500;
/** A connection that lasted so long is re-established without backoff. */
const STEADY_MS = 30_000;
/** Refused tools that one log line names. */
const NAMED = 10;

/** The reason for operators. It quotes nothing from the server, which may be hostile. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Unreachable ? error.cause : error;
  const code: unknown = (cause as { code?: unknown } | undefined)?.code;
  if (cause instanceof SdkError) return `it does not answer as it should (${cause.code})`;
  if (typeof code === 'string') return `it can’t be started or reached (${code})`;
  return error instanceof Unreachable ? 'it can’t be started or reached' : 'it has ended';
}

/** Whether a server did not answer in time. */
export const isTimeout = (error: unknown): boolean =>
  error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;

/**
 * Starts or connects a server and lists its tools, again at intervals and after change notices. A lost
 * server is reconnected with backoff.
 */
export function supervise(
  server: McpServer,
  { logger, version, isBusy }: { logger: Logger; version: string; isBusy: () => boolean },
): Supervised {
  const closing = new AbortController();
  const { signal } = closing;
  const firstListed = Promise.withResolvers<void>();
  let tools: readonly ListedTool[] | undefined;
  let current: Connection | undefined;
  let health: Pick<GroupHealth, 'state' | 'reason'> = { state: 'starting' };
  let reportedRefusals = '';
  /** Ends the pause between two lists. */
  let wake: (() => void) | undefined;

  async function list(connection: Connection): Promise<void> {
    const read = await readToolList(server, await connection.listTools(signal), tools ?? []);
    tools = read.tools;
    firstListed.resolve();
    const refused = read.refused.slice(0, NAMED).join('; ');
    if (refused !== reportedRefusals && refused !== '')
      logger.warn(
        { server: server.name, count: read.refused.length, refused },
        'an MCP server has tools that are not offered',
      );
    reportedRefusals = refused;
  }

  /** Refreshes the tools until the connection is lost. */
  async function refreshUntilLost(connection: Connection): Promise<void> {
    while (!connection.isClosed() && !signal.aborted) {
      const news = new AbortController();
      wake = () => news.abort();
      connection.watch(wake);
      await list(connection).catch((error: unknown) => {
        // A server that handles one request at a time may be busy with a call.
        if (current !== connection || !isTimeout(error) || !isBusy()) throw error;
      });
      current = connection;
      if (health.state !== 'up')
        logger.info({ server: server.name, tools: tools?.length }, 'an MCP server is connected');
      health = { state: 'up' };
      await sleepUntilAborted(LIMITS.mcp.refreshMs, { signal: news.signal });
    }
  }

  async function attempt(): Promise<void> {
    let connection: Connection | undefined;
    let reason = 'it has ended';
    let stderr = '';
    try {
      connection = await connect(server, version, signal);
      await refreshUntilLost(connection);
    } catch (error) {
      reason = reasonOf(error);
      if (error instanceof Unreachable) ({ stderr } = error);
    }
    current = undefined;
    await connection?.close();
    if (signal.aborted) return;
    if (health.state !== 'away' || health.reason !== reason)
      logger.warn(
        { server: server.name, reason, ...(stderr && { said: stderr }) },
        'an MCP server is away; it is tried again',
      );
    health = { state: 'away', reason };
  }

  async function run(): Promise<void> {
    const pauses = createBackoff({
      firstMs: FIRST_PAUSE_MS,
      longestMs: LIMITS.mcp.retryMs,
      spread: [0.8, 1.2],
    });
    while (!signal.aborted) {
      const began = performance.now();
      await attempt();
      if (performance.now() - began > STEADY_MS) pauses.reset();
      await sleepUntilAborted(pauses.next(), { signal });
    }
  }
  const running = run();

  return {
    tools: () => tools,
    firstListed: firstListed.promise,
    connection: () => current,
    health: () => health,
    checkNow: () => wake?.(),
    async close() {
      closing.abort();
      wake?.();
      await running;
    },
  };
}
