import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import { createUnregisteredPool } from '../../../../shared/lib/concurrency/capacity.ts';
import { releaseBuffer } from '../../../../shared/lib/memory/releaseBuffer.ts';
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

/** Large bodies that are being read and discarded, in shares of the accounts. */
const discarded = createUnregisteredPool({ permits: LIMITS.http.discarded, bytes: Infinity });

/** The account of a request; one for all that are refused before it is known. */
const accountOf = ({ state }: Context): string => (state['account_id'] as string | undefined) ?? '';

/**
 * Reads and discards the body, since many clients read their response only after sending all of it.
 * The number of large bodies is limited, because reading is most of the cost of a rejected request.
 * Returns false over that limit, after reading one chunk.
 */
function discard(request: IncomingMessage, account_id: string): boolean {
  if (isLarge(request)) {
    const ofAccount = { account_id };
    if (discarded.exhaustedScope(ofAccount) !== undefined) {
      // After a manual read, Node does not read the rest by itself.
      request.read();
      return false;
    }
    const { release } = discarded.acquire(ofAccount);
    // A request emits no `close` for its connection after its response was sent.
    request.once('end', release);
    request.socket.once('close', release);
  }
  request.on('data', releaseBuffer).resume();
  return true;
}

/** Closes the connection of a request whose response was sent before its body arrived. */
export const closeUnreadBodies: Middleware = async (ctx, next) => {
  await next();
  const { req } = ctx;
  // A closed connection emits no further event that would release the permit.
  if (req.complete || req.socket.destroyed || !announcesBody(req)) return;
  const isRead = discard(req, accountOf(ctx));
  if (await arrivesShortly(req)) return;
  ctx.set('connection', 'close');
  req.socket.destroySoon = () => {
    if (!isRead) req.socket.pause();
    lingeringClose(req.socket, isRead ? LIMITS.http.lingerMs : SHORT_WAIT_MS);
  };
};
