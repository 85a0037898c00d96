import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../../../../shared/limits.ts';

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Begins the requests of a connection one after the other, each when the one before is answered:
 * Node tells no answer but the first that its client has left, so the others would hold for ever
 * what they hold until then. A connection whose client sends too many beforehand is cut.
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
    const before = current.get(socket);
    if (!before || before.closed) return begin(request, response);
    const line = waiting.get(socket) ?? [];
    waiting.set(socket, line);
    if (line.length + 1 >= LIMITS.http.pipelined) return void socket.destroy();
    line.push(() => begin(request, response));
    const next = (): void => {
      if (socket.writable) line.shift()!();
      if (line.length > 0) current.get(socket)!.once('close', next);
    };
    if (line.length === 1) before.once('close', next);
  };
}
