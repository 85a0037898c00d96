import type { Duplex } from 'node:stream';
import { LIMITS } from '../../../../shared/limits.ts';

/**
 * Says that nothing more will come, and cuts the connection a moment later: to cut it at once, while
 * the client is still sending, would take the answer from it.
 */
export function lingeringClose(socket: Duplex, afterMs: number = LIMITS.http.lingerMs): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), afterMs);
  socket.once('close', () => clearTimeout(timer));
}
