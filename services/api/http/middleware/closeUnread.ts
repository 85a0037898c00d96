import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { LIMITS } from '../../../../shared/limits.ts';
import { resolvesWithin } from '../../../../shared/lib/time/resolvesWithin.ts';
import { lingeringClose } from '../connection/lingeringClose.ts';

/** What many clients send in a packet behind the headers: it is worth a moment, not a connection. */
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

let discarded = 0;

/**
 * Reads the body and throws it away: many clients look at their answer only when they have sent all.
 * Of large bodies only so many are read at a time, since reading is most of what a request costs that
 * is refused. False beyond it: then no more than a piece of the body is read.
 */
function discard(request: IncomingMessage): boolean {
  if (isLarge(request)) {
    if (discarded >= LIMITS.http.discarded) {
      // Who has read once reads for themselves: Node would read the rest otherwise.
      request.read();
      return false;
    }
    discarded += 1;
    let isOver = false;
    const over = (): void => {
      if (!isOver) discarded -= 1;
      isOver = true;
    };
    // A request whose answer is sent does not hear of the end of its connection.
    request.once('end', over);
    request.socket.once('close', over);
  }
  request.resume();
  return true;
}

/**
 * Closes the connection of a request that is answered before its body has come: nobody waits for
 * it, and nothing of it is kept.
 */
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
