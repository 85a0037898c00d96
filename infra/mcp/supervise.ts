import { SdkError, SdkErrorCode } from '@modelcontextprotocol/client';
import { createBackoff } from '../../shared/lib/time/backoff.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import { sleepUntilAborted } from '../../shared/lib/time/sleep.ts';
import type { GroupHealth } from '../../shared/ports/toolbox.ts';
import { connect, Unreachable, type Connection } from './connection.ts';
import type { McpServer } from './server.ts';
import { readToolList, type ListedTool } from './toolList.ts';

/** A server that is kept connected. */
interface Supervised {
  tools(): readonly ListedTool[] | undefined;
  /** Resolves when its tools are known for the first time. */
  heard: Promise<void>;
  /** Undefined while it is away. */
  connection(): Connection | undefined;
  health(): Pick<GroupHealth, 'state' | 'reason'>;
  /** Looks now whether it is still there. */
  look(): void;
  close(): Promise<void>;
}

const FIRST_PAUSE_MS = 500;
/** A server that was there for so long, and is lost, is tried again at once. */
const STEADY_MS = 30_000;
/** Refused tools that one line of the log names. */
const NAMED = 10;

/** For an operator, in our own words: what a server says may hold anything. */
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
 * Starts a server or calls it, lists its tools, looks again at times and when it says that they have
 * changed, and begins anew with growing pauses when it is lost.
 */
export function supervise(
  server: McpServer,
  { logger, version, isBusy }: { logger: Logger; version: string; isBusy: () => boolean },
): Supervised {
  const closing = new AbortController();
  const { signal } = closing;
  const heard = Promise.withResolvers<void>();
  let tools: readonly ListedTool[] | undefined;
  let current: Connection | undefined;
  let health: Pick<GroupHealth, 'state' | 'reason'> = { state: 'starting' };
  let toldOf = '';
  /** Ends the pause between two looks. */
  let wake: (() => void) | undefined;

  async function list(connection: Connection): Promise<void> {
    const read = await readToolList(server, await connection.listTools(signal), tools ?? []);
    tools = read.tools;
    heard.resolve();
    const refused = read.refused.slice(0, NAMED).join('; ');
    if (refused !== toldOf && refused !== '')
      logger.warn(
        { server: server.name, count: read.refused.length, refused },
        'an MCP server has tools that are not offered',
      );
    toldOf = refused;
  }

  /** Until the server is lost. */
  async function keep(connection: Connection): Promise<void> {
    while (!connection.isClosed() && !signal.aborted) {
      const news = new AbortController();
      wake = () => news.abort();
      connection.watch(wake);
      await list(connection).catch((error: unknown) => {
        // A server that does one thing at a time is not lost while it works for somebody.
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
    let said = '';
    try {
      connection = await connect(server, version, signal);
      await keep(connection);
    } catch (error) {
      reason = reasonOf(error);
      if (error instanceof Unreachable) ({ said } = error);
    }
    current = undefined;
    await connection?.close();
    if (signal.aborted) return;
    if (health.state !== 'away' || health.reason !== reason)
      logger.warn(
        { server: server.name, reason, ...(said && { said }) },
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
    heard: heard.promise,
    connection: () => current,
    health: () => health,
    look: () => wake?.(),
    async close() {
      closing.abort();
      wake?.();
      await running;
    },
  };
}
