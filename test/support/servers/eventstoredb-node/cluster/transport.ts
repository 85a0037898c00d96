import net from 'node:net';
import { deserialize, serialize } from 'node:v8';
import type { Message } from './protocol.ts';

const RECONNECT_MS = 100;
/**
 * What waits for a member that does not read is given up with its connection. A single append may
 * have 16 MiB.
 */
const MAX_UNSENT_BYTES = 32 * 1024 * 1024;
const MAX_FRAME_BYTES = 64 * 1024 * 1024;
const LENGTH_BYTES = 4;

interface Envelope {
  from: number;
  message: Message;
}

function frame(envelope: Envelope): Buffer {
  const body = serialize(envelope);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(body.length);
  return Buffer.concat([length, body]);
}

/** Cuts the bytes of a connection into the messages that it carries. */
function unframe(socket: net.Socket, received: (envelope: Envelope) => void): void {
  let chunks: Buffer[] = [];
  let size = 0;
  let wanted = LENGTH_BYTES;
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    if (size < wanted) return;
    let bytes = Buffer.concat(chunks);
    for (;;) {
      wanted = LENGTH_BYTES + (bytes.length < LENGTH_BYTES ? 0 : bytes.readUInt32BE());
      if (bytes.length < LENGTH_BYTES || bytes.length < wanted) break;
      received(deserialize(bytes.subarray(LENGTH_BYTES, wanted)) as Envelope);
      bytes = bytes.subarray(wanted);
    }
    if (wanted > MAX_FRAME_BYTES) socket.destroy();
    chunks = [bytes];
    size = bytes.length;
  });
}

/**
 * The network between the nodes: one TCP connection from each to each other, made again when it
 * breaks. What cannot be sent is lost. `ports` are those of all members, `self` is the index of
 * this one.
 */
export async function openTransport(
  self: number,
  ports: readonly number[],
  onMessage: (from: number, message: Message) => void,
) {
  const incoming = new Set<net.Socket>();
  const outgoing = new Map<number, net.Socket>();
  let open = true;
  let isolated = false;

  const server = net.createServer({ noDelay: true }, (socket) => {
    incoming.add(socket);
    socket.on('close', () => incoming.delete(socket));
    socket.on('error', () => socket.destroy());
    unframe(socket, ({ from, message }) => {
      if (open && !isolated) onMessage(from, message);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(ports[self], '127.0.0.1', resolve);
  });

  function connect(peer: number, port: number): void {
    if (!open) return;
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    socket.on('connect', () => outgoing.set(peer, socket));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      outgoing.delete(peer);
      setTimeout(() => connect(peer, port), RECONNECT_MS);
    });
    socket.resume();
  }
  for (const [peer, port] of ports.entries()) if (peer !== self) connect(peer, port);

  function send(peer: number, message: Message): void {
    const socket = outgoing.get(peer);
    if (!socket || isolated) return;
    if (socket.writableLength > MAX_UNSENT_BYTES) socket.destroy();
    else socket.write(frame({ from: self, message }));
  }

  return {
    send,
    /** Cuts the node off from the others, or joins it to them again. Its clients do not notice. */
    isolate: (apart: boolean) => void (isolated = apart),
    close(): void {
      open = false;
      server.close();
      for (const socket of [...incoming, ...outgoing.values()]) socket.destroySoon();
    },
  };
}
