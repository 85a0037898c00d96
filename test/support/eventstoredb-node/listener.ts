import { readFileSync } from 'node:fs';
import net from 'node:net';
import grpc from '@grpc/grpc-js';
import { CERTIFICATE_FILE, KEY_FILE } from '../tls/files.ts';
import type { Endpoint } from './node.ts';

const serverCredentials = (tls: boolean): grpc.ServerCredentials =>
  tls
    ? grpc.ServerCredentials.createSsl(null, [{ private_key: readFileSync(KEY_FILE), cert_chain: readFileSync(CERTIFICATE_FILE) }])
    : grpc.ServerCredentials.createInsecure();

/** A gRPC server behind a listener of our own, so that single connections can be cut and the port can be left and taken again. */
export function createListener(register: (server: grpc.Server) => void, tls: boolean) {
  const sockets = new Set<net.Socket>();
  let listening: net.Server | undefined;
  let port = 0;

  const dropConnections = (): void => {
    for (const socket of sockets) socket.destroy();
  };

  async function listen(wanted: number): Promise<Endpoint> {
    const server = new grpc.Server({ 'grpc.max_receive_message_length': 17 * 1024 * 1024 });
    register(server);
    const injector = server.createConnectionInjector(serverCredentials(tls));
    const listener = net.createServer({ noDelay: true }, (socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      socket.on('error', () => socket.destroy());
      injector.injectConnection(socket);
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

  return { listen, stop, dropConnections, isListening: () => listening !== undefined, port: () => port };
}
