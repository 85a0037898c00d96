import { once } from 'node:events';
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';
import { LIMITS } from '../../shared/limits.ts';
import type { Opening } from './messages.ts';
import type { McpServer } from './server.ts';

/** A connection's place in a thread. */
export interface ThreadConnection {
  port: MessagePort;
  /** Resolves with the reason once the thread has ended. */
  ended: Promise<string>;
  /** Ends the thread, which does not respond. */
  terminate(): void;
  /** Leaves the thread, which ends with its last connection. */
  release(): void;
}

/** Threads for the connections to MCP servers. */
export interface McpThreads {
  connect(server: McpServer, version: string): ThreadConnection;
}

interface Thread {
  worker: Worker;
  connections: number;
  ended: Promise<string>;
  terminate(reason: string): void;
}

/** The busy part of the time that a thread may not exceed. */
const BUSY = 0.95;
const NOT_RESPONDING = 'its thread does not respond';

/** Calls `onBusy` when the thread has had no pause for `busyMs`. */
function watchBusyness({ performance }: Worker, onBusy: () => void): NodeJS.Timeout {
  let last = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    if (performance.eventLoopUtilization(now, last).utilization > BUSY) onBusy();
    last = now;
  }, LIMITS.mcp.busyMs);
  return timer.unref();
}

function startThread(onEnd: () => void): Thread {
  const worker = new Worker(new URL('./thread/mcpWorker.ts', import.meta.url), {
    name: 'mcp',
    resourceLimits: { maxOldGenerationSizeMb: LIMITS.mcp.heapMb, maxYoungGenerationSizeMb: 8 },
  });
  worker.unref();
  let reason = 'its thread has ended';
  const terminate = (why: string): void => {
    reason = why;
    void worker.terminate();
  };
  worker.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') reason = 'it takes too much memory';
  });
  const timer = watchBusyness(worker, () => terminate('it takes too much time'));
  const ended = once(worker, 'exit').then(() => {
    clearInterval(timer);
    onEnd();
    return reason;
  });
  return { worker, connections: 0, ended, terminate };
}

/**
 * Threads for the protocol, so that no server can block the event loop or exhaust the heap. Each
 * server has a thread of its own; beyond `threads` they share them, because a thread takes about
 * 25 MB. A thread starts with its first connection and ends with its last one. Servers that share a
 * thread wait for single messages of each other, whose size is limited; schemas and arguments are
 * checked elsewhere.
 */
export function createMcpThreads(): McpThreads {
  const threads = new Set<Thread>();

  function leastUsed(): Thread {
    if (threads.size >= LIMITS.mcp.threads)
      return [...threads].reduce((least, each) =>
        each.connections < least.connections ? each : least,
      );
    const thread = startThread(() => threads.delete(thread));
    threads.add(thread);
    return thread;
  }

  return {
    connect(server, version) {
      const thread = leastUsed();
      const { port1, port2 } = new MessageChannel();
      const opening: Opening = { server, version, port: port2 };
      thread.connections += 1;
      thread.worker.postMessage(opening, [port2]);
      port1.unref();
      return {
        port: port1,
        ended: thread.ended,
        terminate: () => thread.terminate(NOT_RESPONDING),
        release() {
          thread.connections -= 1;
          if (thread.connections === 0) threads.delete(thread);
          if (thread.connections === 0) void thread.worker.terminate();
        },
      };
    },
  };
}
