import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../../shared/lib/logger.ts';
import type { Ids } from '../../../../shared/ports/clock.ts';
import { throttledLog } from '../throttledLog.ts';
import { lingeringClose } from './lingeringClose.ts';
import { STATUS_CODES } from './nodeHttp.ts';
import { failureEnvelope, jsonText } from '../responses/envelope.ts';

/** The code of an error for an invalid request target. */
const INVALID_TARGET = 'ERR_INVALID_TARGET';

/** The code of an error for a connection that begins with a TLS handshake. */
const TLS = 'ERR_TLS';

interface ProtocolError {
  status: number;
  message: string;
}

/** Errors of Node and its HTTP parser that are not a plain 400. */
const PROTOCOL_ERRORS: Readonly<Record<string, ProtocolError>> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The target and the headers are too large.' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, message: 'The chunk extensions are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request took too long to arrive.' },
  [INVALID_TARGET]: { status: 400, message: 'The request target is not a valid URL.' },
  [TLS]: {
    status: 400,
    message: 'This port speaks HTTP without TLS: use http:// instead of https://.',
  },
};

const NOT_HTTP: ProtocolError = { status: 400, message: 'The request is not valid HTTP/1.1.' };

/** Writes the envelope to the socket itself, then closes the connection. */
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
 * Replaces a target in absolute form (RFC 9112 §3.2.2) by its path, whatever host it names. Returns
 * false for an invalid URL, which Koa would fail to parse.
 */
export function normalizeTarget(request: IncomingMessage): boolean {
  const { url = '' } = request;
  if (url.startsWith('/') || url === '*') return true;
  if (!URL.canParse(url)) return false;
  request.url = url.replace(/^[a-z][\w+.-]*:\/\/[^/?]*\/?/i, '/');
  return request.url.startsWith('/');
}

/** Rejects a request with an invalid target. */
export const rejectTarget = (server: Server, { socket }: IncomingMessage): boolean =>
  server.emit('clientError', Object.assign(new Error(), { code: INVALID_TARGET }), socket);

/** An error of Node's HTTP parser. */
type ClientError = Error & { code?: string; rawPacket?: Buffer; bytesParsed?: number };

/** True for the record of a TLS handshake (RFC 8446 §5.1) at the start of a connection. */
const isTlsHandshake = ({ rawPacket, bytesParsed }: ClientError): boolean =>
  bytesParsed === 0 && rawPacket?.[0] === 0x16 && rawPacket[1] === 0x03;

/**
 * Sends the failure envelope for requests that Node does not pass to the application: parser errors,
 * timeouts, and CONNECT. Unknown expectations (RFC 9110 §10.1.1) are ignored; `100-continue` is
 * answered when the body is read.
 */
export function answerProtocolErrors(
  server: Server,
  { ids, logger }: { ids: Ids; logger: Logger },
): void {
  const logTls = throttledLog((connections) =>
    logger.warn(
      { connections },
      'a client spoke TLS (https) to a port for plain HTTP: use http://, or a proxy that ends TLS',
    ),
  );
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

  server.on('clientError', (error: ClientError, socket) => {
    const isTls = isTlsHandshake(error);
    if (isTls) logTls(undefined);
    const last = latest.get(socket);
    const isEarlierRequest = last?.request.complete === true;
    const answer = (): void => {
      // No response is due on a connection without bytes, or after response headers.
      const expectsResponse =
        (socket as Socket).bytesRead > 0 && (isEarlierRequest || !last?.response.headersSent);
      if (error.code === 'ECONNRESET' || !socket.writable || !expectsResponse)
        return void socket.destroy();
      const { status, message } = PROTOCOL_ERRORS[isTls ? TLS : (error.code ?? '')] ?? NOT_HTTP;
      const id = isEarlierRequest ? undefined : last?.response.getHeader('x-request-id');
      sendProtocolError(
        socket,
        new TurnlogError(status === 413 ? 'payload_too_large' : 'invalid_request', message),
        typeof id === 'string' ? id : ids.uuid(),
        status,
      );
    };
    // An earlier request gets its response first, or the client would take this one for it.
    if (isEarlierRequest && !last.response.closed) last.response.once('close', answer);
    else answer();
  });
}
