import type { Duplex } from 'node:stream';
import { LIMITS } from '../../../../shared/limits.ts';

/**
 * Ends the connection, and destroys it a moment later: destroying it at once, while the client is
 * still sending, could discard the response before the client reads it.
 */
export function lingeringClose(socket: Duplex, afterMs: number = LIMITS.http.lingerMs): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), afterMs);
  socket.once('close', () => clearTimeout(timer));
}
