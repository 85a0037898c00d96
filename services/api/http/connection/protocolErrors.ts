import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { Ids } from '../../../../shared/ports/clock.ts';
import { lingeringClose } from './lingeringClose.ts';
import { failureEnvelope, jsonText } from '../responses/envelope.ts';

/** The code of an error that says that a request's target is none. */
const INVALID_TARGET = 'ERR_INVALID_TARGET';

interface ProtocolError {
  status: number;
  message: string;
}

/** What Node and its HTTP parser report that is not a plain 400. */
const PROTOCOL_ERRORS: Readonly<Record<string, ProtocolError>> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The target and the headers are too large.' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, message: 'The chunk extensions are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request took too long to arrive.' },
  [INVALID_TARGET]: { status: 400, message: 'The request target is not a valid URL.' },
};

const NOT_HTTP: ProtocolError = { status: 400, message: 'The request is not valid HTTP/1.1.' };

/** The envelope, written to the connection by hand; then the connection is closed. */
function sendProtocolError(
  socket: Duplex,
  error: TurnlogError,
  requestId: string,
  status: number,
): void {
  const body = jsonText(failureEnvelope(error, requestId, status), false);
  socket.write(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Request-Id: ${requestId}\r\nConnection: close\r\n\r\n${body}`,
  );
  lingeringClose(socket);
}

/**
 * Makes a target in absolute form (RFC 9112 §3.2.2) the path that it means, whatever host it names.
 * False where it is no URL: Koa takes every target apart, and fails at such a one.
 */
export function normalizeTarget(request: IncomingMessage): boolean {
  const { url = '' } = request;
  if (url.startsWith('/') || url === '*') return true;
  if (!URL.canParse(url)) return false;
  request.url = url.replace(/^[a-z][\w+.-]*:\/\/[^/?]*\/?/i, '/');
  return request.url.startsWith('/');
}

/** Has a request refused whose target is none. */
export const rejectTarget = (server: Server, { socket }: IncomingMessage): boolean =>
  server.emit('clientError', Object.assign(new Error(), { code: INVALID_TARGET }), socket);

/**
 * Answers what Node keeps from the application with the envelope that every failure has: what the
 * HTTP parser refuses, what takes too long to come, and CONNECT. An expectation that Node does not
 * know (RFC 9110 §10.1.1) is ignored; that of 100 Continue is met when the body is read.
 */
export function answerProtocolErrors(server: Server, ids: Ids): void {
  const latest = new WeakMap<Duplex, { request: IncomingMessage; response: ServerResponse }>();
  server.on('request', (request, response) => latest.set(request.socket, { request, response }));
  for (const expected of ['checkContinue', 'checkExpectation'] as const)
    server.on(expected, (request, response) => server.emit('request', request, response));
  server.on('connect', (_request, socket) =>
    sendProtocolError(
      socket,
      new TurnlogError('method_not_allowed', 'There is no method CONNECT.'),
      ids.uuid(),
      405,
    ),
  );

  server.on('clientError', (error: Error & { code?: string }, socket) => {
    const last = latest.get(socket);
    const isBefore = last?.request.complete === true;
    const answer = (): void => {
      // Who has sent nothing has asked nothing, and who has an answer has this one.
      const isAsking =
        (socket as Socket).bytesRead > 0 && (isBefore || !last?.response.headersSent);
      if (error.code === 'ECONNRESET' || !socket.writable || !isAsking)
        return void socket.destroy();
      const { status, message } = PROTOCOL_ERRORS[error.code ?? ''] ?? NOT_HTTP;
      const id = isBefore ? undefined : last?.response.getHeader('x-request-id');
      sendProtocolError(
        socket,
        new TurnlogError(status === 413 ? 'payload_too_large' : 'invalid_request', message),
        typeof id === 'string' ? id : ids.uuid(),
        status,
      );
    };
    // A request before the faulty one has its answer first, or the client would take this one for
    // it.
    if (isBefore && !last.response.closed) last.response.once('close', answer);
    else answer();
  });
}
