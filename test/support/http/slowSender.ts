import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface SlowSender {
  socket: Socket;
  /** What has come so far. */
  received(): string;
  /** Resolves with all that came, once the server has ended the connection. */
  ended(): Promise<string>;
}

/** A connection that sends these bytes and then one more piece each `everyMs`, for ever. */
export async function sendSlowly(
  url: string,
  bytes: string,
  { everyMs = 20, piece = 'x' } = {},
): Promise<SlowSender> {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(bytes);
  const timer = setInterval(() => socket.write(piece), everyMs);
  const ended = new Promise((resolve) => socket.once('end', resolve).once('close', resolve));
  socket.once('close', () => clearInterval(timer));
  return {
    socket,
    received: () => received,
    async ended() {
      await ended;
      socket.destroy();
      return received;
    },
  };
}
