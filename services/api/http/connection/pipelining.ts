import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../../../../shared/limits.ts';

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Handles the pipelined requests of a connection one at a time. Node reports a disconnect only to the
 * first open response; the others would never release what they hold until it. A connection with
 * too many pipelined requests is cut.
 */
export function answerInOrder(answer: RequestListener): RequestListener {
  const current = new WeakMap<Socket, ServerResponse>();
  const waiting = new WeakMap<Socket, (() => void)[]>();

  function begin(request: IncomingMessage, response: ServerResponse): void {
    current.set(request.socket, response);
    answer(request, response);
  }

  return (request, response) => {
    const { socket } = request;
    const previous = current.get(socket);
    if (!previous || previous.closed) return begin(request, response);
    const queue = waiting.get(socket) ?? [];
    waiting.set(socket, queue);
    if (queue.length + 1 >= LIMITS.http.pipelined) return void socket.destroy();
    queue.push(() => begin(request, response));
    const next = (): void => {
      if (socket.writable) queue.shift()!();
      if (queue.length > 0) current.get(socket)!.once('close', next);
    };
    if (queue.length === 1) previous.once('close', next);
  };
}
