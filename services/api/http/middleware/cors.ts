import koaCors from '@koa/cors';
import type { Middleware } from 'koa';

/** How long a browser may remember what it was told, in seconds. */
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
  'X-Request-Id',
  'X-Turnlog-Visible',
];

/**
 * Lets pages of these origins call the API from a browser; `*` stands for all. Keys travel in
 * headers, so cookies are never asked for.
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
  });
}
