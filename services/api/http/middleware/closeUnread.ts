import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { LIMITS } from '../../../../shared/limits.ts';
import { resolvesWithin } from '../../../../shared/lib/time/resolvesWithin.ts';
import { lingeringClose } from '../connection/lingeringClose.ts';

/** Bodies up to this size often follow the headers in one packet: worth a wait, not a connection. */
const SMALL_BYTES = 16_384;
const SHORT_WAIT_MS = 100;

const announcesBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

const isLarge = ({ headers }: IncomingMessage): boolean =>
  Number(headers['content-length'] ?? Infinity) > SMALL_BYTES;

async function arrivesShortly(request: IncomingMessage): Promise<boolean> {
  if (isLarge(request) || request.headers.expect !== undefined) return false;
  await resolvesWithin(new Promise((resolve) => request.once('close', resolve)), SHORT_WAIT_MS);
  return request.complete;
}

/** Large bodies that are being read and discarded. */
let discarding = 0;

/**
 * Reads and discards the body, since many clients read their response only after sending all of it.
 * The number of large bodies is limited, because reading is most of the cost of a rejected request.
 * Returns false over that limit, after reading one chunk.
 */
function discard(request: IncomingMessage): boolean {
  if (isLarge(request)) {
    if (discarding >= LIMITS.http.discarded) {
      // After a manual read, Node does not read the rest by itself.
      request.read();
      return false;
    }
    discarding += 1;
    let isReleased = false;
    const release = (): void => {
      if (!isReleased) discarding -= 1;
      isReleased = true;
    };
    // A request emits no `close` for its connection after its response was sent.
    request.once('end', release);
    request.socket.once('close', release);
  }
  request.resume();
  return true;
}

/** Closes the connection of a request whose response was sent before its body arrived. */
export const closeUnreadBodies: Middleware = async (ctx, next) => {
  await next();
  const { req } = ctx;
  if (req.complete || !announcesBody(req)) return;
  const isRead = discard(req);
  if (await arrivesShortly(req)) return;
  ctx.set('connection', 'close');
  req.socket.destroySoon = () => {
    if (!isRead) req.socket.pause();
    lingeringClose(req.socket, isRead ? LIMITS.http.lingerMs : SHORT_WAIT_MS);
  };
};
