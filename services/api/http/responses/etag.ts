import { createHash } from 'node:crypto';
import type { Context } from 'koa';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

/** A weak ETag of the content, since the response may also be indented or compressed. */
export const computeEtag = (...parts: (string | Buffer)[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return `W/"${hash.digest('base64url').slice(0, 22)}"`;
};

/**
 * Whether `If-None-Match` names this ETag, by weak comparison. Unlike `ctx.fresh`, ignores the
 * `Cache-Control: no-cache` that `fetch` adds to such a request: it addresses caches on the way.
 */
function isNamed(ctx: Context, etag: string): boolean {
  const named = ctx.get('if-none-match').trim();
  return named === '*' || named.includes(etag.replace('W/', ''));
}

/** Sets `ETag` and `Cache-Control`. Returns true after setting 304, where the client's copy is current. */
export function respondNotModified(
  ctx: Context,
  etag: string,
  cacheControl = 'private, no-cache',
): boolean {
  ctx.status = 200;
  ctx.set('etag', etag);
  ctx.set('cache-control', cacheControl);
  const isCurrent = isNamed(ctx, etag);
  if (isCurrent) ctx.status = 304;
  return isCurrent;
}

/** A stored object at one of its revisions. */
interface Revision {
  id: string;
  revision: number;
  updated_at: string;
}

/**
 * Creates a function that returns the ETag of an object's revision. It is strong, because `If-Match`
 * compares only strong ones: it identifies the object, not the bytes of a response. A hash of the
 * presentation follows the revision, so that releases with another schema have other ETags.
 */
export function createRevisionEtag(schema: object): (of: Revision) => string {
  const schemaEtag = computeEtag(JSON.stringify(schema));
  return ({ id, revision, updated_at }) =>
    `"${revision}${computeEtag(schemaEtag, `${id}.${revision}.${updated_at}`).slice(2).replace('"', '-')}`;
}

/** A strong ETag of a revision, in a list. */
const REVISION_ETAG = /(?<!W\/)"(\d{1,10})(?:-[\w-]*)?"/g;

/** Throws `invalid_request` for a condition of a change that an operation would ignore. */
export function refuseIfMatch(ctx: Context): void {
  if (ctx.get('if-match') === '') return;
  const message = 'is not supported by this operation';
  throw new TurnlogError('invalid_request', `The header "If-Match" ${message}.`, {
    details: { 'if-match': { message, path: 'header/if-match' } },
  });
}

/**
 * The revisions that `If-Match` names; undefined where any revision matches. Weak, foreign and invalid
 * ETags name no revision.
 */
export function parseIfMatch(ctx: Context): number[] | undefined {
  const value = ctx.get('if-match').trim();
  if (value === '' || value === '*') return undefined;
  return [...value.matchAll(REVISION_ETAG)].map(([, revision]) => Number(revision));
}
