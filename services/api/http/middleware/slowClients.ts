import type { Middleware } from 'koa';
import type { Socket } from 'node:net';
import type { Logger } from '../../../../shared/lib/logger.ts';
import { LIMITS } from '../../../../shared/limits.ts';

const CHECK_EVERY_MS = 1_000;

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
  /** When it last received bytes, or had none to receive. */
  since: number;
}

interface SlowClientOptions {
  logger: Logger;
  /** True while other responses wait, or soon would, for the memory of so many unsent bytes. */
  isScarce: (unsent: number) => boolean;
  checkEveryMs?: number;
  stalledMs?: number;
  stalledWhenScarceMs?: number;
}

/**
 * Cuts connections whose clients stopped reading their response. One timer checks all connections, so
 * that requests cost nothing.
 */
export function disconnectSlowClients({
  logger,
  isScarce,
  checkEveryMs = CHECK_EVERY_MS,
  stalledMs = LIMITS.http.stalledReaderMs,
  stalledWhenScarceMs = LIMITS.http.stalledReaderInTheWayMs,
}: SlowClientOptions): Middleware {
  const readers = new Map<Socket, ClientProgress>();
  let timer: NodeJS.Timeout | undefined;

  const unsent = (): number =>
    [...readers.keys()].reduce((sum, { writableLength }) => sum + writableLength, 0);

  function checkReaders(): void {
    const now = performance.now();
    const maxStallMs = isScarce(unsent()) ? stalledWhenScarceMs : stalledMs;
    for (const [socket, reader] of readers) {
      const received = countReceivedBytes(socket);
      if (socket.destroyed) readers.delete(socket);
      else if (socket.writableLength === 0 || received !== reader.received)
        readers.set(socket, { received, since: now });
      else if (now - reader.since >= maxStallMs) {
        logger.debug({ unsent: socket.writableLength }, 'a client stopped reading its response');
        socket.destroy();
      }
    }
    if (readers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return async (ctx, next) => {
    const { socket } = ctx.req;
    if (!readers.has(socket)) readers.set(socket, { received: 0, since: performance.now() });
    timer ??= setInterval(checkReaders, checkEveryMs).unref();
    await next();
  };
}
