import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type Koa from 'koa';
import { registerResource } from '../../../../shared/lib/concurrency/resources.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { Logger } from '../../../../shared/lib/logger.ts';
import { KIB } from '../../../../shared/lib/units.ts';
import type { Ids } from '../../../../shared/ports/clock.ts';
import { createServer, GatheredRequest } from './nodeHttp.ts';
import { answerInOrder } from './pipelining.ts';
import { throttledLog } from '../throttledLog.ts';
import { limitHeaderMemory } from './headerMemory.ts';
import { answerProtocolErrors, findRequestFault, refuseRequest } from './protocolErrors.ts';

/**
 * Longer than the idle timeout of common load balancers (60 s), so that they never reuse a
 * connection that is being closed here.
 */
const KEEP_ALIVE_MS = 65_000;

/**
 * The interval of checks for connections that exceed a timeout. Each such connection costs about
 * 50 µs, and a check closes all of them in one step of the event loop.
 */
const CHECK_EVERY_MS = 200;

/**
 * Node reads 64 KiB of a body that waits for its turn, and goes on until it has as much as this: with
 * its default, it reads twice. A streamed response waits for its client beyond this, too.
 */
const BUFFERED_BYTES = 16 * KIB;

/** The least interval between closing idle connections, while the limit is reached. */
const CLOSE_IDLE_EVERY_MS = 1_000;

export interface ApiServer {
  /** The URL it listens at: `http://127.0.0.1:3000`. */
  url: string;
  /** Stops accepting and closes idle connections; resolves when the last connection is closed. */
  close(): Promise<void>;
  /** True while requests are handled whose responses are not written yet. */
  isAnswering(): boolean;
  /** Cuts the remaining connections. */
  destroyConnections(): void;
}

/** The open connections, including those that Node no longer tracks, as after CONNECT. */
function trackConnections(server: Server, idle: Map<Socket, number>): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      idle.delete(socket);
    });
  });
  return sockets;
}

/**
 * Closes connections over the limit, and, while it is reached, the half of the idle ones that has been
 * idle longest: a client that sends one request after the other keeps its connection.
 */
function limitConnections(
  server: Server,
  {
    portOption,
    maxConnections,
    logger,
    connections,
    idle,
  }: Pick<ServerOptions, 'portOption' | 'maxConnections' | 'logger'> & {
    connections: ReadonlySet<Socket>;
    idle: ReadonlyMap<Socket, number>;
  },
): void {
  server.maxConnections = maxConnections;
  let rejected = 0;
  registerResource(portOption === 'PORT' ? 'connections' : 'metrics_connections', {
    usage: () => ({
      count: { limit: maxConnections, used: connections.size },
      rejected: { account: 0, process: rejected },
    }),
  });
  const logRefused = throttledLog((refused) =>
    logger.warn(
      { refused, max_connections: maxConnections },
      'connections were refused: the limit is reached',
    ),
  );
  let idleClosedAt = -Infinity;
  server.on('drop', () => {
    rejected += 1;
    const now = performance.now();
    if (now - idleClosedAt >= CLOSE_IDLE_EVERY_MS) {
      idleClosedAt = now;
      // A request may be arriving.
      for (const [socket, bytesRead] of [...idle].slice(0, Math.ceil(idle.size / 2)))
        if (socket.bytesRead === bytesRead) socket.destroy();
    }
    logRefused(undefined);
  });
}

type Address = Pick<ServerOptions, 'port' | 'portOption' | 'host'>;

const hostOption = ({ portOption }: Address): string => portOption.replace('PORT', 'HOST');

const HOSTS =
  'Use 127.0.0.1 to accept connections from this machine only, or 0.0.0.0 to accept them from every network.';

/** Advice when the service can't listen, by the error code of the system. */
const LISTEN_ERRORS: Readonly<Record<string, (address: Address) => string>> = {
  EADDRINUSE: ({ host, port, portOption }) =>
    `The address ${host}:${port} is in use. Set ${portOption} to another port, or 0 for a free one.`,
  EACCES: ({ port, portOption }) =>
    `This user may not listen on port ${port}. Set ${portOption} to 1024 or more.`,
  EADDRNOTAVAIL: (address) =>
    `${hostOption(address)} is ${address.host}, which is no address of this machine. ${HOSTS}`,
  ENOTFOUND: (address) =>
    `${hostOption(address)} is ${address.host}, which is no host name that this machine knows. ${HOSTS}`,
};

function listen(server: Server, address: Address): Promise<AddressInfo> {
  const { host, port } = address;
  return new Promise((resolve, reject) => {
    server.once('error', (error: Error & { code?: string }) => {
      const message =
        LISTEN_ERRORS[error.code ?? '']?.(address) ??
        `Can't listen on ${host}:${port}: ${error.message}`;
      reject(new TurnlogError('configuration_invalid', message, { cause: error }));
    });
    server.listen({ port, host, backlog: LIMITS.http.backlog }, () =>
      resolve(server.address() as AddressInfo),
    );
  });
}

interface ServerOptions {
  /** The option that sets the port. */
  portOption: 'PORT' | 'METRICS_PORT';
  host: string;
  port: number;
  maxConnections: number;
  ids: Ids;
  logger: Logger;
}

/** Serves the application. Throws `configuration_invalid` where it can't listen. */
export async function startServer(
  app: Koa,
  { host, port, portOption, maxConnections, ids, logger }: ServerOptions,
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
  const idle = new Map<Socket, number>();
  const answerNext = answerInOrder({
    idle,
    holds: limitHeaderMemory(
      portOption === 'PORT' ? 'headers' : 'metrics_headers',
      LIMITS.http.largeHeadersBytes,
    ),
    answer(request, response) {
      const fault = findRequestFault(request);
      if (fault === undefined) void answer(request, response);
      else refuseRequest(request.socket, fault, ids);
    },
    refuse: ({ socket }) => refuseRequest(socket, 'ERR_HEADER_MEMORY', ids),
  });
  const server = createServer(
    {
      IncomingMessage: GatheredRequest,
      highWaterMark: BUFFERED_BYTES,
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: LIMITS.http.headersMs,
      requestTimeout: LIMITS.http.requestMs,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      requireHostHeader: false,
    },
    (request, response) => {
      // The client sent this request before it read the response that ends the connection.
      if (request.socket.writableEnded) request.socket.destroy();
      else answerNext(request, response);
    },
  );
  // Node drops headers beyond this count silently. The count is one higher, so that too many are detected.
  server.maxHeadersCount = LIMITS.http.headers + 1;
  const connections = trackConnections(server, idle);
  limitConnections(server, { portOption, maxConnections, logger, connections, idle });
  answerProtocolErrors(server, { ids, logger });
  const address = await listen(server, { port, portOption, host });
  // After `listening`, an error means that a connection could not be accepted, for example for want
  // of a file descriptor; the next one may be.
  server.on('error', (error) => logger.error({ err: error }, 'a connection could not be accepted'));
  return {
    url: `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      }),
    isAnswering: () => unanswered > 0,
    destroyConnections() {
      for (const socket of connections) socket.destroy();
    },
  };
}
