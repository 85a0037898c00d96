import { addAbortListener, once } from 'node:events';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';
import {
  McpFailure,
  type CallReply,
  type DescribedTools,
  type ListSummary,
  type ThreadReply,
  type ThreadReport,
  type ThreadRequest,
} from './messages.ts';
import type { McpServer } from './server.ts';
import type { McpThread } from './mcpThread.ts';

/** An open connection to a server, in a thread. Requests reject with McpFailure. */
export interface McpConnection {
  /** Lists the tools, and loads them if `isWanted`, which may reserve their memory. */
  listTools(
    isWanted: (list: ListSummary) => boolean,
    signal: AbortSignal,
  ): Promise<DescribedTools | undefined>;
  /** Calls a tool with arguments as JSON. */
  callTool(tool: string, args: string, signal: AbortSignal): Promise<CallReply>;
  /** Why it takes no more calls; undefined while it is open. */
  end(): ConnectionEnd | undefined;
  /** Sets the listener, which is called when the connection closes or the tools have changed. */
  watch(listener: (event: 'closed' | 'changed') => void): void;
  /** True while a request has no reply. */
  isBusy(): boolean;
  /** Waits for the calls in flight, and closes the connection. */
  closeAfterCalls(): Promise<void>;
  close(): Promise<void>;
}

interface ConnectionEnd {
  /** The calls in flight to a `forgotten` session have outcomes, those of a `lost` connection do not. */
  kind: 'lost' | 'forgotten';
  reason: string;
  /** Log messages of the server. */
  discardedLogs: number;
}

type Unnumbered<Request> = Request extends { id: number } ? Omit<Request, 'id'> : never;

/** How long a thread may take to close a connection beyond the time for the server. */
const CLOSE_GRACE_MS = 3_000;

/** Starts or connects a server in a thread. Throws McpFailure, or the abort reason. */
export async function connectMcp(
  server: McpServer,
  { version, thread, signal }: { version: string; thread: McpThread; signal: AbortSignal },
): Promise<McpConnection> {
  const held = thread.connect(server, version);
  const { port } = held;
  const pending = new Map<number, PromiseWithResolvers<ThreadReply>>();
  let requests = 0;
  let end: ConnectionEnd | undefined;
  let listener: ((event: 'closed' | 'changed') => void) | undefined;

  function onEnd(reached: ConnectionEnd): void {
    const { kind, reason } = reached;
    const failure = new McpFailure({ kind, reason, quote: '' });
    if (kind === 'lost') for (const { reject } of pending.values()) reject(failure);
    if (end) return;
    end = reached;
    listener?.('closed');
  }
  void held.ended.then((reason) => onEnd({ kind: 'lost', reason, discardedLogs: 0 }));
  port.on('message', (report: ThreadReport) => {
    if ('reply' in report) pending.get(report.id)?.resolve(report.reply);
    else if ('failure' in report) pending.get(report.id)?.reject(new McpFailure(report.failure));
    else if (report.event === 'closed') onEnd(report);
    else listener?.('changed');
  });
  // Listening to a port keeps the process alive.
  port.unref();

  const send = (what: ThreadRequest): void => port.postMessage(what);
  async function request(
    unnumbered: Unnumbered<Exclude<ThreadRequest, { op: 'cancel' }>>,
    stop: AbortSignal,
  ): Promise<ThreadReply> {
    stop.throwIfAborted();
    if (end) throw new McpFailure({ ...end, quote: '' });
    const id = (requests += 1);
    const reply = Promise.withResolvers<ThreadReply>();
    pending.set(id, reply);
    using _cancelling = addAbortListener(stop, () => {
      send({ op: 'cancel', id });
      reply.reject(stop.reason);
    });
    send({ ...unnumbered, id });
    try {
      return await reply.promise;
    } finally {
      pending.delete(id);
    }
  }

  async function listTools(
    isWanted: (list: ListSummary) => boolean,
    stop: AbortSignal,
  ): Promise<DescribedTools | undefined> {
    using _permit = await thread.listings
      .acquire({ account_id: server.name }, { waitMs: LIMITS.mcp.refreshMs, signal: stop })
      .catch((error: unknown) => {
        if (!isTurnlogError(error)) throw error;
        throw new McpFailure({ kind: 'timeout', reason: 'other servers list slowly', quote: '' });
      });
    const list = (await request({ op: 'list' }, stop)) as ListSummary;
    const ending = { op: 'endList', load: isWanted(list) } as const;
    return (await request(ending, stop)) as DescribedTools | undefined;
  }

  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= closeOnce());
  async function closeOnce(): Promise<void> {
    const closed = once(port, 'close');
    send({ op: 'close' });
    const isClosed = await resolvesWithin(
      Promise.race([closed, held.ended]),
      LIMITS.mcp.closeMs + CLOSE_GRACE_MS,
    );
    if (!isClosed) held.terminate();
    held.release();
    onEnd({ kind: 'lost', reason: 'it was closed', discardedLogs: 0 });
  }

  async function closeAfterCalls(): Promise<void> {
    await Promise.allSettled(Array.from(pending.values(), ({ promise }) => promise));
    await close();
  }

  try {
    await request({ op: 'open' }, signal);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    listTools,
    callTool: (tool, args, stop) => request({ op: 'call', tool, args }, stop) as Promise<CallReply>,
    end: () => end,
    isBusy: () => pending.size > 0,
    watch: (next) => void (listener = next),
    closeAfterCalls,
    close,
  };
}
