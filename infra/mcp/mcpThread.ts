import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';
import {
  createFairSemaphore,
  type FairSemaphore,
} from '../../shared/lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ThreadOpening } from './messages.ts';
import type { McpServer } from './server.ts';

/** A connection's place in a thread. */
interface ThreadConnection {
  port: MessagePort;
  /** Resolves with the reason once the thread has ended. */
  ended: Promise<string>;
  /** Ends the thread, which does not respond. */
  terminate(): void;
  /** Leaves the thread, which ends with its last connection. */
  release(): void;
}

/** The thread for the connections to MCP servers. */
export interface McpThread {
  connect(server: McpServer, version: string): ThreadConnection;
  /** Concurrent listings, whose tools are kept in the thread until the list is complete. */
  listings: FairSemaphore;
}

interface Thread {
  worker: Worker;
  connections: number;
  ended: Promise<string>;
  terminate(reason: string): void;
}

/** Heap for young objects. The default takes several times as much. */
const YOUNG_MB = 12;
const NOT_RESPONDING = 'its thread does not respond';
/** Calls `onSilent` when the thread does not answer within `silentMs`, however busy it is. */
function watchThread(worker: Worker, onSilent: () => void): NodeJS.Timeout {
  let hasAnswered = true;
  worker.on('message', () => (hasAnswered = true));
  const timer = setInterval(() => {
    if (!hasAnswered) onSilent();
    hasAnswered = false;
    worker.postMessage('ping');
  }, LIMITS.mcp.silentMs);
  return timer.unref();
}

function startThread(onEnd: () => void): Thread {
  const worker = new Worker(new URL('./thread/mcpWorker.ts', import.meta.url), {
    name: 'mcp',
    resourceLimits: {
      maxOldGenerationSizeMb: LIMITS.mcp.heapMb,
      maxYoungGenerationSizeMb: YOUNG_MB,
    },
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
  const timer = watchThread(worker, () => terminate(NOT_RESPONDING));
  // `once` of node:events would reject where the thread fails before it exits.
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  worker.once('exit', () => {
    clearInterval(timer);
    onEnd();
    resolve(reason);
  });
  return { worker, connections: 0, ended, terminate };
}

/**
 * The thread that connects to the servers, so that none of them can block the event loop or exhaust
 * the heap. It starts with the first connection and ends with the last one. All servers share it,
 * because a thread takes about 40 MB. They wait for single messages of each other, whose size is
 * limited; a server that sends too much is disconnected, and schemas and arguments are checked
 * elsewhere.
 */
export function createMcpThread(): McpThread {
  let thread: Thread | undefined;

  function start(): Thread {
    const started: Thread = startThread(() => {
      if (thread === started) thread = undefined;
    });
    return started;
  }

  return {
    listings: createFairSemaphore('mcp_listings', {
      permits: LIMITS.mcp.listings,
      bytes: Infinity,
    }),
    connect(server, version) {
      const used = (thread ??= start());
      const { port1, port2 } = new MessageChannel();
      const opening: ThreadOpening = { server, version, port: port2 };
      used.connections += 1;
      used.worker.postMessage(opening, [port2]);
      return {
        port: port1,
        ended: used.ended,
        terminate: () => used.terminate(NOT_RESPONDING),
        release() {
          used.connections -= 1;
          if (used.connections > 0) return;
          if (thread === used) thread = undefined;
          void used.worker.terminate();
        },
      };
    },
  };
}
