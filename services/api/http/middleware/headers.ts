import type { Middleware } from 'koa';

/**
 * Forbids content sniffing, and caching of responses with an account's data. An operation may allow
 * caching of its response; failures are never cached.
 */
export const securityHeaders: Middleware = async (ctx, next) => {
  ctx.set('x-content-type-options', 'nosniff');
  const forbidCaching = (): void => {
    if (ctx.path.startsWith('/v1/')) ctx.set('cache-control', 'private, no-store');
  };
  forbidCaching();
  try {
    await next();
  } catch (error) {
    ctx.remove('etag');
    ctx.remove('link');
    forbidCaching();
    throw error;
  }
};
