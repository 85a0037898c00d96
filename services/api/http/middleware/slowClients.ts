import type { Middleware } from 'koa';
import type { Socket } from 'node:net';
import type { Logger } from '../../../../shared/lib/logger.ts';
import { LIMITS } from '../../../../shared/limits.ts';

const CHECK_EVERY_MS = 1_000;
/** After each such time above its share, an account's clients have to read twice as much. */
const DOUBLE_EVERY_MS = 60_000;

/** libuv's counts of a connection: bytes written to it, and bytes still queued. */
interface Handle {
  bytesWritten: number;
  writeQueueSize: number;
}

/** Bytes that the client has received so far; partial writes count. */
function countReceivedBytes(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { _handle?: Handle | null };
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0;
}

interface ClientProgress {
  received: number;
  /** When it had received so many bytes, or had none to receive. */
  since: number;
  /** How long its account has held more than its share while responses waited for memory. */
  aboveShareMs: number;
  /** The state of its latest request, with its account once that is known. */
  state: { account_id?: string };
}

interface SlowClientOptions {
  logger: Logger;
  /** True while other responses wait, or soon would, for the memory of so many unsent bytes. */
  isScarce: (unsent: number) => boolean;
  /** True while responses wait for memory that the account may hold. */
  isInTheWay: (account_id: string) => boolean;
  /** True if the account has more than its share of the memory. */
  exceedsShare: (account_id: string) => boolean;
  checkEveryMs?: number;
  stalledMs?: number;
  stalledWhenScarceMs?: number;
  slowReaderBytes?: number;
  doubleEveryMs?: number;
}

/**
 * Cuts connections whose clients stopped reading their response, or read it too slowly while responses
 * wait for the memory of their account. While the account has more than its share, the speed that its
 * clients must reach doubles every minute. One timer checks all connections, so that requests cost
 * nothing.
 */
export function disconnectSlowClients({
  logger,
  isScarce,
  isInTheWay,
  exceedsShare,
  checkEveryMs = CHECK_EVERY_MS,
  stalledMs = LIMITS.http.stalledReaderMs,
  stalledWhenScarceMs = LIMITS.http.stalledReaderInTheWayMs,
  slowReaderBytes = LIMITS.http.slowReaderBytes,
  doubleEveryMs = DOUBLE_EVERY_MS,
}: SlowClientOptions): Middleware {
  const readers = new Map<Socket, ClientProgress>();
  let timer: NodeJS.Timeout | undefined;

  const unsent = (): number =>
    [...readers.keys()].reduce((sum, { writableLength }) => sum + writableLength, 0);

  /** The bytes that a client has to read to keep its connection. `isCut`: another one of its account was cut. */
  function leastBytes(reader: ClientProgress, account_id: string, isCut: boolean): number {
    if (!isInTheWay(account_id)) return 1;
    if (isCut || !exceedsShare(account_id)) return slowReaderBytes;
    reader.aboveShareMs += checkEveryMs;
    return slowReaderBytes * 2 ** Math.floor(reader.aboveShareMs / doubleEveryMs);
  }

  function checkReaders(): void {
    /** Their memory is counted until the connections close. */
    const cutAccounts = new Set<string>();
    const now = performance.now();
    const maxStallMs = isScarce(unsent()) ? stalledWhenScarceMs : stalledMs;
    for (const [socket, reader] of readers) {
      if (socket.destroyed) {
        readers.delete(socket);
        continue;
      }
      const received = countReceivedBytes(socket);
      const { account_id = '' } = reader.state;
      const hasReadEnough = (): boolean =>
        received - reader.received >= leastBytes(reader, account_id, cutAccounts.has(account_id));
      if (socket.writableLength === 0 || hasReadEnough()) {
        reader.received = received;
        reader.since = now;
      } else if (now - reader.since >= maxStallMs) {
        logger.debug({ unsent: socket.writableLength }, 'a client did not read its response');
        socket.destroy();
        cutAccounts.add(account_id);
      }
    }
    if (readers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return async (ctx, next) => {
    const { socket } = ctx.req;
    const reader = readers.get(socket);
    const { state } = ctx;
    if (reader) Object.assign(reader, { state, aboveShareMs: 0 });
    else readers.set(socket, { received: 0, since: performance.now(), aboveShareMs: 0, state });
    timer ??= setInterval(checkReaders, checkEveryMs).unref();
    await next();
  };
}
