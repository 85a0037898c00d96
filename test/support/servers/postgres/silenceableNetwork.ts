import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * A way to a server whose connections can fall silent: nothing arrives any more in either
 * direction, and none is closed, as when a host or a cable is gone: what is sent is never taken.
 * Connections that are made afterwards work, unless it is cut.
 */
export async function silenceableNetwork(serverUrl: string) {
  const target = new URL(serverUrl);
  const sockets: Socket[] = [];
  const silent = new Set<Socket>();
  let isCut = false;
  function silence(): void {
    for (const socket of sockets) silent.add(socket.pause());
  }
  const pass = (from: Socket, to: Socket): void => {
    sockets.push(from);
    from.on('data', (bytes) => to.write(bytes));
    from.on('error', () => undefined);
    from.on('close', () => silent.has(from) || to.destroy());
  };
  const listener = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    pass(near, far);
    pass(far, near);
    if (isCut) silence();
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const url = new URL(serverUrl);
  url.port = String((listener.address() as AddressInfo).port);
  return {
    url: url.href,
    silence,
    /** For good: connections that are made from now on are silent as well. */
    cut(): void {
      isCut = true;
      silence();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}
