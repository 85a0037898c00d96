import koaCors from '@koa/cors';
import type { Middleware } from 'koa';

/** How long a browser may cache a preflight response, in seconds. */
const MAX_AGE = 600;

const ALLOWED = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'If-Match',
  'If-None-Match',
  'Last-Event-ID',
  'Prefer',
  'X-Api-Key',
  'X-Request-Id',
];
const EXPOSED = [
  'ETag',
  'Idempotency-Replayed',
  'Link',
  'Location',
  'Preference-Applied',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'WWW-Authenticate',
  'X-Request-Id',
  'X-Turnlog-Visible',
];

/**
 * Allows pages of these origins to call the API; `*` allows all. API keys are sent in headers, so
 * credentials (cookies) are not allowed.
 */
export function cors(origins: string): Middleware {
  const listed = new Set(origins.split(','));
  return koaCors({
    origin: (ctx) =>
      listed.has('*') ? '*' : listed.has(ctx.get('origin')) ? ctx.get('origin') : '',
    allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowHeaders: ALLOWED,
    exposeHeaders: EXPOSED,
    maxAge: MAX_AGE,
    // The headers are set already, and errors are logged without them.
    keepHeadersOnError: false,
  });
}
