import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TurnlogError, type ErrorCode } from '../../../../shared/lib/errors/turnlogError.ts';
import { runPaced } from '../../../../shared/lib/concurrency/pacedSteps.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { Logger } from '../../../../shared/lib/logger.ts';
import type { Ids } from '../../../../shared/ports/clock.ts';
import { throttledLog } from '../throttledLog.ts';
import { lingeringClose } from './lingeringClose.ts';
import { STATUS_CODES } from './nodeHttp.ts';
import { failureEnvelope, jsonText } from '../responses/envelope.ts';

/** Why a request that Node has parsed is refused. */
type RequestFault = 'ERR_INVALID_TARGET' | 'ERR_TOO_MANY_HEADERS' | 'ERR_HEADER_MEMORY';

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
  [TLS]: {
    status: 400,
    message: 'This port speaks HTTP without TLS: use http:// instead of https://.',
  },
};

const REQUEST_FAULTS: Readonly<Record<RequestFault, ProtocolError>> = {
  ERR_INVALID_TARGET: { status: 400, message: 'The request target is not a valid URL.' },
  ERR_TOO_MANY_HEADERS: {
    status: 431,
    message: `The request has more than ${LIMITS.http.headers} headers.`,
  },
  ERR_HEADER_MEMORY: {
    status: 503,
    message: 'The process holds too many requests with large headers. Try again later.',
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
  const retryAfter = status === 503 ? 'Retry-After: 1\r\n' : '';
  socket.write(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${retryAfter}Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Request-Id: ${requestId}\r\nConnection: close\r\n\r\n${body}`,
  );
  lingeringClose(socket);
}

/**
 * Replaces a target in absolute form (RFC 9112 §3.2.2) by its path, whatever host it names. Returns
 * false for an invalid URL, which Koa would fail to parse.
 */
function normalizeTarget(request: IncomingMessage): boolean {
  const { url = '' } = request;
  if (url.startsWith('/') || url === '*') return true;
  if (!URL.canParse(url)) return false;
  request.url = url.replace(/^[a-z][\w+.-]*:\/\/[^/?]*\/?/i, '/');
  return request.url.startsWith('/');
}

/** Why a request that Node has parsed is to be refused; undefined if it is not. */
export function findRequestFault(request: IncomingMessage): RequestFault | undefined {
  if (request.rawHeaders.length / 2 > LIMITS.http.headers) return 'ERR_TOO_MANY_HEADERS';
  return normalizeTarget(request) ? undefined : 'ERR_INVALID_TARGET';
}

const CODES: Readonly<Record<number, ErrorCode>> = { 413: 'payload_too_large', 503: 'overloaded' };

const errorOf = ({ status, message }: ProtocolError): TurnlogError =>
  new TurnlogError(CODES[status] ?? 'invalid_request', message);

/** Refuses a request that Node has parsed, and closes its connection. */
export function refuseRequest(socket: Duplex, fault: RequestFault, ids: Ids): void {
  const error = REQUEST_FAULTS[fault];
  sendProtocolError(socket, errorOf(error), ids.uuid(), error.status);
}

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
  server.on('request', (request, response) => {
    const { socket } = request;
    latest.set(socket, { request, response });
    // An idle connection would keep the headers of its last request in memory. A request that is
    // still arriving after its response stays: an error in the rest gets no second response.
    const forget = (): void => {
      const isOver = response.closed && request.complete;
      if (isOver && latest.get(socket)?.response === response) latest.delete(socket);
    };
    response.once('close', forget);
    request.once('close', forget);
  });
  for (const expected of ['checkContinue', 'checkExpectation'] as const)
    server.on(expected, (request, response) => server.emit('request', request, response));
  server.on('connect', (_request, socket) => {
    // Node has removed its own listeners, and an error without one would end the process.
    socket.on('error', () => socket.destroy());
    sendProtocolError(
      socket,
      new TurnlogError('method_not_allowed', 'There is no method CONNECT.'),
      ids.uuid(),
      405,
    );
  });

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
      const failure = PROTOCOL_ERRORS[isTls ? TLS : (error.code ?? '')] ?? NOT_HTTP;
      const id = isEarlierRequest ? undefined : last?.response.getHeader('x-request-id');
      const requestId = typeof id === 'string' ? id : ids.uuid();
      sendProtocolError(socket, errorOf(failure), requestId, failure.status);
    };
    // An earlier request gets its response first, or the client would take this one for it.
    if (isEarlierRequest && !last.response.closed) last.response.once('close', answer);
    // Node reports all requests that are late at once. One that began meanwhile is answered instead.
    else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
      runPaced('late requests', () => {
        if (latest.get(socket) === last) answer();
        return false;
      });
    else answer();
  });
}
