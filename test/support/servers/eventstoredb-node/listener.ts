import { readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import tls from 'node:tls';
import grpc from '@grpc/grpc-js';
import { compressResponses } from './compression.ts';
import { CERTIFICATE_FILE, KEY_FILE } from '../tls/files.ts';
import type { Endpoint } from './node.ts';

/** Speaks TLS to a connection and hands it on by the protocol that its client has chosen. */
function terminateTls({
  h2,
  http1,
}: Record<'h2' | 'http1', (socket: net.Socket) => void>): tls.Server {
  const certificate = { key: readFileSync(KEY_FILE), cert: readFileSync(CERTIFICATE_FILE) };
  const server = tls.createServer(
    { ...certificate, ALPNProtocols: ['h2', 'http/1.1'] },
    (socket) => (socket.alpnProtocol === 'h2' ? h2(socket) : http1(socket)),
  );
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return server;
}

interface Services {
  register: (server: grpc.Server) => void;
  onHttp: http.RequestListener;
  /** Called for each compressed response. Without it, responses are not compressed. */
  onCompressed?: () => void;
}

/**
 * A gRPC server behind a listener of our own, so that single connections can be cut and the port
 * can be left and taken again. With TLS the port serves HTTP/1.1 as well.
 */
export function createListener({ register, onHttp, onCompressed }: Services, secure: boolean) {
  const sockets = new Set<net.Socket>();
  let listening: net.Server | undefined;
  let port = 0;

  const dropConnections = (): void => {
    for (const socket of sockets) socket.destroy();
  };

  async function listen(wanted: number): Promise<Endpoint> {
    const server = new grpc.Server({ 'grpc.max_receive_message_length': 17 * 1024 * 1024 });
    if (onCompressed) compressResponses(server, onCompressed);
    register(server);
    const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure());
    const http1 = http.createServer(onHttp);
    const h2 = (socket: net.Socket): void => injector.injectConnection(socket);
    const secured = secure
      ? terminateTls({ h2, http1: (socket) => http1.emit('connection', socket) })
      : undefined;
    const listener = net.createServer({ noDelay: true }, (socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      socket.on('error', () => socket.destroy());
      if (secured) secured.emit('connection', socket);
      else h2(socket);
    });
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      listener.listen(port === 0 ? wanted : port, '127.0.0.1', resolve);
    });
    listener.on('close', () => {
      injector.destroy();
      server.forceShutdown();
    });
    listening = listener;
    port = (listener.address() as net.AddressInfo).port;
    return { host: '127.0.0.1', port };
  }

  /** Leaves the port; whoever is connected is cut off. */
  async function stop(): Promise<void> {
    const closing = listening;
    listening = undefined;
    if (!closing) return;
    const closed = new Promise((resolve) => closing.close(resolve));
    dropConnections();
    await closed;
  }

  return {
    listen,
    stop,
    dropConnections,
    isListening: () => listening !== undefined,
    port: () => port,
  };
}
