import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { settlesWithin } from '../../../shared/settlesWithin.ts';
import { closeGently } from '../closeGently.ts';

/** What many clients send in a packet behind the headers: it is worth a moment, not a connection. */
const SMALL_BYTES = 16_384;
const MOMENT_MS = 100;

const announcesBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

async function comesAtOnce(request: IncomingMessage): Promise<boolean> {
  const { headers } = request;
  const length = Number(headers['content-length'] ?? Infinity);
  if (length > SMALL_BYTES || headers.expect !== undefined) return false;
  await settlesWithin(new Promise((resolve) => request.once('close', resolve)), MOMENT_MS);
  return request.complete;
}

/**
 * Closes the connection of a request that is answered before its body has come: nobody waits for
 * it, and nothing of it is kept.
 */
export const closeUnread: Middleware = async (ctx, next) => {
  await next();
  const { req } = ctx;
  if (req.complete || !announcesBody(req)) return;
  req.resume();
  if (await comesAtOnce(req)) return;
  ctx.set('connection', 'close');
  req.socket.destroySoon = () => closeGently(req.socket);
};
