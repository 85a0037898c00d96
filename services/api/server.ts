import { createServer, STATUS_CODES, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type Koa from 'koa';
import { TurnlogError } from '../../shared/errors.ts';
import type { Ids } from '../../shared/ports/clock.ts';
import { failureEnvelope, jsonText } from './envelope.ts';

/** Longer than the idle time of common load balancers (60 s), so that they never reuse a connection that is being closed here. */
const KEEP_ALIVE_MS = 65_000;

export interface ApiServer {
  /** Where it listens, for people: `http://127.0.0.1:3000`. */
  url: string;
  /** Stops accepting; resolves when the last connection is gone. Idle connections are closed at once. */
  close(): Promise<void>;
  /** Cuts the connections that are left. */
  cut(): void;
}

/** What the HTTP parser refuses never reaches Koa; it gets the same envelope, written by hand. */
function answerUnparsable(error: Error & { code?: string }, socket: Duplex, ids: Ids): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }[error.code ?? ''] ?? 400;
  const request_id = ids.uuid();
  const body = jsonText({ ...failureEnvelope(new TurnlogError('invalid_request', 'The request is not valid HTTP/1.1.'), request_id), status }, false);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Request-Id: ${request_id}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function listen(server: Server, port: number, host: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: Error & { code?: string }) => {
      const why = error.code === 'EADDRINUSE' ? `The address ${host}:${port} is in use. Set PORT to another port, or 0 for a free one.` : `Can't listen on ${host}:${port}: ${error.message}`;
      reject(new TurnlogError('invalid_request', why, { cause: error }));
    });
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

/** Serves the application. Errors: `invalid_request` when the address can't be had. */
export async function serve(app: Koa, { host, port, ids }: { host: string; port: number; ids: Ids }): Promise<ApiServer> {
  const handle = app.callback();
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => void handle(request, response));
  server.on('clientError', (error, socket) => answerUnparsable(error, socket, ids));
  const address = await listen(server, port, host);
  return {
    url: `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      }),
    cut: () => server.closeAllConnections(),
  };
}
