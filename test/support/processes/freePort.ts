import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { once } from 'node:events';

/**
 * A port that was free a moment ago, for a server whose address must be known before it is up. It
 * is below those that the system gives to whoever asks for any (from 32768 on Linux), so that no
 * other suite is given it meanwhile.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(20_000, 32_768);
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return freePort();
  }
  server.close();
  await once(server, 'close');
  return port;
}
