import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../../../../shared/limits.ts';

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

/** How a server handles its requests. */
interface RequestHandlers {
  /** True if the headers of the request may stay in memory. */
  holds: (request: IncomingMessage, response: ServerResponse) => boolean;
  answer: RequestListener;
  /** Refuses a request whose headers may not stay in memory. */
  refuse: RequestListener;
  /**
   * Gets the connections whose requests are all answered, with the bytes read until then; the one that
   * has been idle longest is first.
   */
  idle?: Map<Socket, number>;
}

/**
 * Handles the pipelined requests of a connection one at a time. Node reports a disconnect only to the
 * first open response; the others would never release what they hold until it. A connection with
 * too many pipelined requests, or too large ones, is cut.
 */
export function answerInOrder({
  holds,
  answer,
  refuse,
  idle = new Map(),
}: RequestHandlers): RequestListener {
  // Entries are removed: an idle connection would keep the headers of its last request in memory.
  const current = new WeakMap<Socket, ServerResponse>();
  const waiting = new WeakMap<Socket, (() => void)[]>();

  function begin(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    current.set(socket, response);
    idle.delete(socket);
    response.once('close', () => {
      current.delete(socket);
      const [next, ...others] = waiting.get(socket) ?? [];
      if (others.length === 0 || !socket.writable) waiting.delete(socket);
      else waiting.set(socket, others);
      if (!socket.writable) return;
      if (next) next();
      else idle.set(socket, socket.bytesRead);
    });
    answer(request, response);
  }

  return (request, response) => {
    const { socket } = request;
    // Node reports the other requests of a chunk even if the connection was cut at one of them.
    if (socket.destroyed) return;
    const queue = waiting.get(socket) ?? [];
    const isFirst = !current.has(socket);
    if (!isFirst && queue.length + 1 >= LIMITS.http.pipelined) return void socket.destroy();
    const isHeld = holds(request, response);
    if (isFirst) return isHeld ? begin(request, response) : refuse(request, response);
    if (!isHeld) return void socket.destroy();
    waiting.set(socket, [...queue, () => begin(request, response)]);
  };
}
