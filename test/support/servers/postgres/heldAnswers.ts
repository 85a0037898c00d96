import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * A way to a server that holds back what it says on a connection from a question on, to let it
 * arrive at once, as it may on a busy machine.
 */
export async function heldAnswers(serverUrl: string, question: string) {
  const target = new URL(serverUrl);
  const sockets: Socket[] = [];
  let deliver: ((bytes: Buffer) => void) | undefined;
  let held = Buffer.alloc(0);
  const listener = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    let holds = false;
    near.on('data', (bytes) => {
      if (deliver === undefined && bytes.includes(question)) {
        holds = true;
        deliver = (said) => void near.write(said);
      }
      far.write(bytes);
    });
    far.on('data', (bytes) => {
      if (holds) held = Buffer.concat([held, bytes]);
      else near.write(bytes);
    });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.push(from);
      from.on('error', () => undefined);
      from.on('close', () => to.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const url = new URL(serverUrl);
  url.port = String((listener.address() as AddressInfo).port);
  return {
    url: url.href,
    /** What is held back. */
    held: async (): Promise<string> => held.toString('latin1'),
    release: (): void => deliver?.(held),
    async close() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}
