import type { Middleware } from 'koa';
import type { Socket } from 'node:net';
import type { Logger } from '../../../../shared/lib/logger.ts';
import { LIMITS } from '../../../../shared/limits.ts';

const CHECK_EVERY_MS = 1_000;

/** What libuv knows of a connection: the bytes that it was given, and those it still has. */
interface Handle {
  bytesWritten: number;
  writeQueueSize: number;
}

/** Bytes that the client's side has taken; a write counts as it goes, not when it is done. */
function bytesTaken(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { _handle?: Handle | null };
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0;
}

interface ClientProgress {
  taken: number;
  /** Since when it has taken nothing that was there for it. */
  since: number;
}

interface SlowClientOptions {
  logger: Logger;
  /** True while others wait, or soon would, for what so many bytes of answers hold. */
  isScarce: (unsent: number) => boolean;
  checkEveryMs?: number;
  stalledMs?: number;
  stalledWhenScarceMs?: number;
}

/**
 * Cuts connections whose clients take nothing of their answers any more, whatever the answer's
 * size. All are looked at together, so that a request pays nothing for it.
 */
export function disconnectSlowClients({
  logger,
  isScarce: isShort,
  checkEveryMs: lookEveryMs = CHECK_EVERY_MS,
  stalledMs = LIMITS.http.stalledReaderMs,
  stalledWhenScarceMs: inTheWayMs = LIMITS.http.stalledReaderInTheWayMs,
}: SlowClientOptions): Middleware {
  const readers = new Map<Socket, ClientProgress>();
  let timer: NodeJS.Timeout | undefined;

  const unsent = (): number =>
    [...readers.keys()].reduce((sum, { writableLength }) => sum + writableLength, 0);

  function look(): void {
    const now = performance.now();
    const patience = isShort(unsent()) ? inTheWayMs : stalledMs;
    for (const [socket, reader] of readers) {
      const taken = bytesTaken(socket);
      if (socket.destroyed) readers.delete(socket);
      else if (socket.writableLength === 0 || taken !== reader.taken)
        readers.set(socket, { taken, since: now });
      else if (now - reader.since >= patience) {
        logger.debug({ left: socket.writableLength }, 'a client took nothing of its answer');
        socket.destroy();
      }
    }
    if (readers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return async (ctx, next) => {
    const { socket } = ctx.req;
    if (!readers.has(socket)) readers.set(socket, { taken: 0, since: performance.now() });
    timer ??= setInterval(look, lookEveryMs).unref();
    await next();
  };
}
