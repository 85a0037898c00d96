import type { Middleware } from 'koa';

/**
 * Says of every answer that it is what it says it is, and of those that hold an account's data that
 * nobody may keep them. An operation that knows better says so; a failure is never kept.
 */
export const securityHeaders: Middleware = async (ctx, next) => {
  ctx.set('x-content-type-options', 'nosniff');
  const protect = (): void => {
    if (ctx.path.startsWith('/v1/')) ctx.set('cache-control', 'private, no-store');
  };
  protect();
  try {
    await next();
  } catch (error) {
    ctx.remove('etag');
    ctx.remove('link');
    protect();
    throw error;
  }
};
