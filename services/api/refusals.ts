import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { TurnlogError } from '../../shared/errors.ts';
import type { Ids } from '../../shared/ports/clock.ts';
import { failureEnvelope, jsonText } from './envelope.ts';
import { ERROR_ANSWERS } from './errors.ts';

/** What the HTTP parser reports that is not a plain 400. */
const STATUS_OF: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** The envelope, written to the connection by hand; then the connection is closed. */
function refuse(
  socket: Duplex,
  error: TurnlogError,
  requestId: string,
  status = ERROR_ANSWERS[error.code].status,
): void {
  const body = jsonText({ ...failureEnvelope(error, requestId), status }, false);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Request-Id: ${requestId}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/**
 * Answers what Node keeps from the application with the envelope that every failure has: what the
 * HTTP parser refuses, and CONNECT. An expectation that Node does not know (RFC 9110 §10.1.1) is
 * ignored.
 */
export function answerRefusals(server: Server, ids: Ids): void {
  const latest = new WeakMap<Duplex, { request: IncomingMessage; response: ServerResponse }>();
  server.on('request', (request, response) => latest.set(request.socket, { request, response }));
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('connect', (_request, socket) =>
    refuse(
      socket,
      new TurnlogError('method_not_allowed', 'There is no method CONNECT.'),
      ids.uuid(),
    ),
  );

  server.on('clientError', (error: Error & { code?: string }, socket) => {
    const answer = (): void => {
      if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
      else
        refuse(
          socket,
          new TurnlogError('invalid_request', 'The request is not valid HTTP/1.1.'),
          ids.uuid(),
          STATUS_OF[error.code ?? ''] ?? 400,
        );
    };
    // A request before the faulty one has its answer first, or the client would take this one for
    // it.
    const before = latest.get(socket);
    if (before?.request.complete && !before.response.closed) before.response.once('close', answer);
    else answer();
  });
}
