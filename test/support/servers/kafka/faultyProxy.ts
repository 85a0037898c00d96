import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** What becomes of a request: `lost` on its way there, or `unanswered` though it arrived. */
export type Fate = 'passed' | 'lost' | 'unanswered';

export interface FaultyProxy {
  /** `host:port`, to be told to clients as the broker's. */
  address: string;
  /** Requests that met with a fault. */
  faults: () => number;
  /** Silences all connections of now, in both directions, without closing them. */
  halfOpen: () => number;
  close: () => Promise<void>;
}

/** Reads frames of the Kafka protocol: four bytes of length, then so many. */
export function framesOf(onFrame: (frame: Buffer) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
      const end = 4 + rest.readInt32BE(0);
      onFrame(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
  };
}

/**
 * Stands between clients and the one broker of a cluster, and decides the fate of each request; a
 * fault closes the connection.
 */
export async function startFaultyProxy(
  broker: () => string,
  fate: () => Fate = () => 'passed',
): Promise<FaultyProxy> {
  let faults = 0;
  const pairs = new Set<{ silent: boolean }>();
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const [host = '', port = ''] = broker().split(':');
    const upstream = connect(Number(port), host);
    const pair = { silent: false };
    let answers = true;
    const end = (): void => {
      pairs.delete(pair);
      for (const socket of [client, upstream]) {
        sockets.delete(socket);
        socket.destroy();
      }
    };
    pairs.add(pair);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => !pair.silent && end());
    }
    client.on(
      'data',
      framesOf((frame) => {
        if (pair.silent || !answers) return;
        const becomes = fate();
        if (becomes !== 'passed') faults += 1;
        if (becomes === 'lost') return end();
        if (becomes === 'unanswered') answers = false;
        upstream.write(frame);
      }),
    );
    upstream.on('data', (chunk: Buffer) => {
      if (pair.silent) return;
      if (!answers) return end();
      client.write(chunk);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    faults: () => faults,
    halfOpen() {
      for (const pair of pairs) pair.silent = true;
      const silenced = pairs.size;
      pairs.clear();
      return silenced;
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
