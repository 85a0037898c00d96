import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { framesOf } from './faultyProxy.ts';

export const API_VERSIONS = 18;

export interface BrokerRequest {
  apiKey: number;
  correlationId: number;
}

export interface LyingBroker {
  /** `host:port` */
  address: string;
  /** Connections that were ever made, and those that the client has not closed. */
  connections: () => { made: number; open: number };
  /** The requests received, by API key. */
  requests: number[];
  close: () => Promise<void>;
}

/** A response of the Kafka protocol, with its length and the id of its request. */
export function responseTo({ correlationId }: BrokerRequest, body: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeInt32BE(4 + body.length, 0);
  head.writeInt32BE(correlationId, 4);
  return Buffer.concat([head, body]);
}

/** A response to ApiVersions that supports what kafkajs needs, with this throttle time. */
export function apiVersions(request: BrokerRequest, throttleMs: number): Buffer {
  const keys = [0, 1, 2, 3, 10, API_VERSIONS, 22, 24, 25, 26];
  const body = Buffer.alloc(2 + 4 + keys.length * 6 + 4);
  body.writeInt32BE(keys.length, 2);
  keys.forEach((key, index) => {
    body.writeInt16BE(key, 6 + index * 6);
    body.writeInt16BE(12, 6 + index * 6 + 4);
  });
  body.writeInt32BE(throttleMs, body.length - 4);
  return responseTo(request, body);
}

/** A broker that responds with the bytes of `respond`, and with nothing where they are undefined. */
export async function startLyingBroker(
  respond: (request: BrokerRequest, socket: Socket) => Buffer | undefined,
): Promise<LyingBroker> {
  const sockets = new Set<Socket>();
  const requests: number[] = [];
  let made = 0;
  // It does not close its side when the client has closed the other one.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    made += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.on(
      'data',
      framesOf((frame) => {
        const request = { apiKey: frame.readInt16BE(4), correlationId: frame.readInt32BE(8) };
        requests.push(request.apiKey);
        const response = respond(request, socket);
        if (response) socket.write(response);
      }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => ({ made, open: sockets.size }),
    requests,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
