import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type Koa from 'koa';
import { TurnlogError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/logger.ts';
import type { Ids } from '../../shared/ports/clock.ts';
import { answerRefusals } from './refusals.ts';

/**
 * Longer than the idle time of common load balancers (60 s), so that they never reuse a connection
 * that is being closed here.
 */
const KEEP_ALIVE_MS = 65_000;

export interface ApiServer {
  /** Where it listens, for people: `http://127.0.0.1:3000`. */
  url: string;
  /**
   * Stops accepting; resolves when the last connection is gone. Idle connections are closed at
   * once.
   */
  close(): Promise<void>;
  /** Whether requests are worked on whose answers are not written yet. */
  isAnswering(): boolean;
  /** Cuts the connections that are left. */
  cut(): void;
}

/** The open connections, those too that Node hands over and forgets, as at a CONNECT. */
function connectionsOf(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

function listen(server: Server, port: number, host: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: Error & { code?: string }) => {
      const why =
        error.code === 'EADDRINUSE'
          ? `The address ${host}:${port} is in use. Set PORT to another port, or 0 for a free one.`
          : `Can't listen on ${host}:${port}: ${error.message}`;
      reject(new TurnlogError('configuration_invalid', why, { cause: error }));
    });
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

/** Serves the application. Errors: `configuration_invalid` when the address can't be had. */
export async function serve(
  app: Koa,
  { host, port, ids, logger }: { host: string; port: number; ids: Ids; logger: Logger },
): Promise<ApiServer> {
  const handle = app.callback();
  let unanswered = 0;
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    unanswered += 1;
    try {
      await handle(request, response);
    } finally {
      unanswered -= 1;
    }
  }
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS, requireHostHeader: false },
    (request, response) => void answer(request, response),
  );
  const connections = connectionsOf(server);
  answerRefusals(server, ids);
  const address = await listen(server, port, host);
  // Once it listens, an error is a connection that could not be accepted (no file descriptor is
  // left); the next one may be.
  server.on('error', (error) => logger.error({ err: error }, 'a connection could not be accepted'));
  return {
    url: `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      }),
    isAnswering: () => unanswered > 0,
    cut() {
      for (const socket of connections) socket.destroy();
    },
  };
}
