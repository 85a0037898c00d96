import { createHash } from 'node:crypto';
import type { Context } from 'koa';

/** A weak ETag of the content, since the response may also be indented or compressed. */
export const computeEtag = (...parts: (string | Buffer)[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return `W/"${hash.digest('base64url').slice(0, 22)}"`;
};

/** Sets `ETag` and `Cache-Control`. Returns true after setting 304, where the client's copy is current. */
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
