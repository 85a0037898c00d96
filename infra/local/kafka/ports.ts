import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';

/**
 * Below the ports that the system gives to whoever asks for any (from 32768 on Linux): nobody is
 * given one before the broker is up.
 */
const FREE_PORTS = [20_000, 32_768] as const;

async function hold(port: number): Promise<Server> {
  const server = createServer().listen(port || randomInt(...FREE_PORTS), '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if (port === 0) return hold(0);
    throw new TurnlogError('local_server_failed', `No broker can listen there: ${String(error)}.`, {
      cause: error,
    });
  }
}

/**
 * Ports to listen on, 0 standing for one that is free. Errors: `local_server_failed` when one is
 * taken.
 */
export async function freePorts(wanted: readonly number[]): Promise<number[]> {
  const held: Server[] = [];
  try {
    // All are held until the last one is known: no two can be the same.
    for (const port of wanted) held.push(await hold(port));
    return held.map((server) => (server.address() as AddressInfo).port);
  } finally {
    await Promise.all(held.map((server) => once(server.close(), 'close')));
  }
}
