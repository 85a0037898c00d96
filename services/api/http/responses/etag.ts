import { createHash } from 'node:crypto';
import type { Context } from 'koa';

/** Names what an answer was made of; weak, because it is sent pretty or compressed as well. */
export const computeEtag = (...parts: (string | Buffer)[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return `W/"${hash.digest('base64url').slice(0, 22)}"`;
};

/**
 * Lets the client keep the answer and ask whether it is still right. True where it has that one
 * already, and is told so: there is no more to answer then.
 */
export function respondNotModified(
  ctx: Context,
  etag: string,
  cacheControl = 'private, no-cache',
): boolean {
  ctx.status = 200;
  ctx.set('etag', etag);
  ctx.set('cache-control', cacheControl);
  if (ctx.fresh) ctx.status = 304;
  return ctx.fresh;
}
