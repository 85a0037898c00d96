import { createBackoff } from '../../shared/lib/time/backoff.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { Permit } from '../../shared/lib/concurrency/capacity.ts';
import type { MemoryLedger } from '../../shared/lib/memory/ledger.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import { sleepUntilAborted } from '../../shared/lib/time/sleep.ts';
import type { ToolSchemaChecker } from '../../shared/ports/schemaChecker.ts';
import type { GroupHealth } from '../../shared/ports/toolbox.ts';
import { connectMcp, type McpConnection } from './connection.ts';
import { McpFailure, type ListSummary } from './messages.ts';
import type { McpServer } from './server.ts';
import type { McpThread } from './mcpThread.ts';
import { readToolList, type ListedTool, type ToolList } from './toolList.ts';

/** A server whose connection is re-established after each loss. */
interface Supervised {
  tools(): readonly ListedTool[] | undefined;
  /** Resolves with the first list of tools. */
  firstListed: Promise<void>;
  /** Undefined while it is unavailable. */
  connection(): McpConnection | undefined;
  health(): Pick<GroupHealth, 'state' | 'reason' | 'problems'>;
  /** Notes how many items of a tool's answer were not valid. */
  noteAnswer(tool: string, invalidItems: number): void;
  /** Checks the connection by the next listing, after its shortest pause. */
  checkSoon(): void;
  close(): Promise<void>;
}

const FIRST_PAUSE_MS = 500;
/** A connection that lasted so long is re-established without backoff. */
const STEADY_MS = 30_000;
/** Problems that a log line or health names. */
const NAMED = 10;

/** A listing pauses for this many times as long as it took, so that it can't take a whole core. */
const PAUSE_FACTOR = 10;

/** The resources that all groups of a process share. */
export interface McpResources {
  logger: Logger;
  version: string;
  thread: McpThread;
  schemas: ToolSchemaChecker;
  memory: Pick<MemoryLedger, 'forceReserve' | 'largestRequest' | 'usage'>;
}

const NO_MEMORY = 'there is no memory for its list of tools, which is loaded later';

/**
 * Starts or connects a server and lists its tools, again at intervals and after change notices. A lost
 * server is reconnected with backoff.
 */
export function supervise(
  server: McpServer,
  { logger, version, thread, schemas, memory }: McpResources,
): Supervised {
  const closing = new AbortController();
  const { signal } = closing;
  const firstListed = Promise.withResolvers<void>();
  let tools: readonly ListedTool[] | undefined;
  const reserveTools = (bytes: number): Permit =>
    memory.forceReserve({ account_id: server.name, purpose: 'toolLists', bytes });
  /** The memory of the tools, and of a new list while it is read. */
  const permit = reserveTools(0);
  /** The list of the tools. Without a digest, it is read again. */
  let loaded: { digest: string | undefined; bytes: number } = { digest: undefined, bytes: 0 };
  /** The memory of the tools that a list replaces, where there is none for both. */
  let replaced: Permit | undefined;
  let lacksMemory = false;
  let current: McpConnection | undefined;
  /** Connections of forgotten sessions, which are being closed. */
  const retired = new Set<McpConnection>();
  let health: Pick<GroupHealth, 'state' | 'reason'> = { state: 'starting' };
  let refusedTools: readonly string[] = [];
  /** The invalid items in the last answer of tools, by name. */
  const invalidItems = new Map<string, number>();
  /** Ends the pauses between two listings. */
  let wake: (() => void) | undefined;
  /** Ends the pause before the next listing that is due, but not the shortest pause. */
  let refresh: (() => void) | undefined;

  /**
   * Reserves the memory of a list that replaces the tools, which stay meanwhile. Until then the memory of
   * all servers may exceed its limit by one list.
   */
  function reserveReplacement(bytes: number): boolean {
    const { used, limit } = memory.usage('toolLists');
    if (used > limit || !permit.resize(Math.max(loaded.bytes, bytes))) return false;
    replaced = reserveTools(Math.min(loaded.bytes, bytes));
    return true;
  }

  /** Reserves the memory of a list that has changed. */
  function reserve({ digest, bytes }: ListSummary): boolean {
    const isNew = digest !== loaded.digest;
    const hasMemory =
      !isNew ||
      (bytes <= memory.largestRequest('toolLists') &&
        (permit.resize(loaded.bytes + bytes) || reserveReplacement(bytes)));
    if (!hasMemory) permit.countRejection();
    if (!hasMemory && !lacksMemory)
      logger.warn(
        { server: server.name, bytes, tools: tools?.length ?? 0 },
        'there is no memory for the list of tools of an MCP server; its earlier tools stay',
      );
    lacksMemory = !hasMemory;
    return isNew && hasMemory;
  }

  async function list(connection: McpConnection, lost: AbortSignal): Promise<void> {
    let next: ListSummary | undefined;
    try {
      const described = await connection.listTools((summary) => reserve((next = summary)), lost);
      if (!described || !next) return;
      const read = await readToolList(server, described, { before: tools ?? [], schemas });
      // Tools that are only refused here may be accepted next time.
      const isComplete = read.refused.length === described.refused.length;
      loaded = { digest: isComplete ? next.digest : undefined, bytes: next.bytes };
      offer(read);
    } finally {
      permit.resize(loaded.bytes);
      replaced?.release();
    }
  }

  function offer(read: ToolList): void {
    tools = read.tools;
    firstListed.resolve();
    for (const name of invalidItems.keys())
      if (!tools.some((tool) => tool.name === name)) invalidItems.delete(name);
    const refused = read.refused.slice(0, NAMED);
    if (refused.join() !== refusedTools.join() && refused.length > 0)
      logger.warn(
        { server: server.name, count: read.refused.length, refused: refused.join('; ') },
        'an MCP server has tools that are not offered',
      );
    refusedTools = refused;
  }

  function noteAnswer(tool: string, items: number): void {
    if (items > 0 && !invalidItems.has(tool))
      logger.warn(
        { server: server.name, tool, items },
        'an MCP server answered with content that is not valid',
      );
    if (items > 0) invalidItems.set(tool, items);
    else invalidItems.delete(tool);
  }

  function problems(): string[] {
    const answers = Array.from(
      invalidItems,
      ([tool, items]) => `${items} of the items in the last answer of "${tool}" are not valid`,
    );
    return [...(lacksMemory ? [NO_MEMORY] : []), ...refusedTools, ...answers].slice(0, NAMED);
  }

  /** Watches for what ends the pauses after a listing, from its beginning on. */
  function watchFrom(connection: McpConnection): { lost: AbortSignal; due: AbortSignal } {
    const lost = new AbortController();
    const due = new AbortController();
    refresh = () => due.abort();
    wake = () => {
      lost.abort();
      due.abort();
    };
    connection.watch((event) => (event === 'closed' ? wake?.() : refresh?.()));
    return { lost: lost.signal, due: due.signal };
  }

  /** Refreshes the tools until the connection is lost. */
  async function refreshUntilLost(connection: McpConnection): Promise<void> {
    const { listPauseMs, refreshMs } = LIMITS.mcp;
    while (!connection.end() && !signal.aborted) {
      const { lost, due } = watchFrom(connection);
      const began = performance.now();
      await list(connection, lost).catch((error: unknown) => {
        // A server that handles one request at a time may be busy with a call.
        const isLate = error instanceof McpFailure && error.kind === 'timeout';
        if (current !== connection || !isLate || !connection.isBusy()) throw error;
      });
      current = connection;
      if (health.state !== 'up')
        logger.info({ server: server.name, tools: tools?.length }, 'an MCP server is connected');
      health = { state: 'up' };
      if (connection.end() || signal.aborted) return;
      const pauseMs = Math.max(listPauseMs, PAUSE_FACTOR * (performance.now() - began));
      // Neither change notices nor invalid answers, which a server may send without end, end the first pause.
      await sleepUntilAborted(pauseMs, { signal: lost });
      await sleepUntilAborted(refreshMs, { signal: due });
    }
  }

  async function closeRetired(connection: McpConnection): Promise<void> {
    try {
      await connection.closeAfterCalls();
    } catch (error) {
      logger.error({ server: server.name, err: error }, 'an MCP connection could not be closed');
    }
    retired.delete(connection);
  }

  /** Closes the connection after its calls, and an earlier one at once: its calls are lost. */
  function retire(connection: McpConnection): void {
    for (const earlier of retired) void earlier.close().catch(() => undefined);
    retired.add(connection);
    void closeRetired(connection);
  }

  async function attempt(): Promise<void> {
    let connection: McpConnection | undefined;
    let failure: unknown;
    try {
      connection = await connectMcp(server, { version, thread, signal });
      await refreshUntilLost(connection);
    } catch (error) {
      failure = error;
    }
    const end = connection?.end();
    const quote = !connection && failure instanceof McpFailure ? failure.quote : '';
    const reason =
      end?.reason ?? (failure instanceof McpFailure ? failure.reason : 'it can’t be used');
    current = undefined;
    if (end?.kind === 'forgotten') retire(connection!);
    else await connection?.close();
    if (signal.aborted) return;
    if (health.state !== 'away' || health.reason !== reason)
      logger.warn(
        {
          server: server.name,
          reason,
          ...(quote && { said: quote }),
          ...(end?.discardedLogs && { discarded_logs: end.discardedLogs }),
        },
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
    health() {
      const named = problems();
      return { ...health, ...(named.length > 0 && { problems: named }) };
    },
    noteAnswer,
    checkSoon: () => refresh?.(),
    async close() {
      closing.abort();
      wake?.();
      await running;
      await Promise.all(Array.from(retired, (connection) => connection.close()));
      permit.release();
    },
  };
}
