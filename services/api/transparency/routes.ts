import type { Context } from 'koa';
import type { TSchema } from 'typebox';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { parseTilePath } from '../../../shared/transparency/tlog/tiles.ts';
import type { RouteContext, ServedLog } from '../context.ts';
import { etagOf, isKnown } from '../http/responses/etag.ts';
import { defineRoute, type Answer, type Route } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { CheckpointNote, Entries, Tile } from './schemas.ts';

const PREFIX = '/v1/log/';
/** A bundle of 256 entries is the largest answer. */
const MOST_BYTES = 32 * 1_024;
/** What stands at the path of a tile never changes, unless an operator restores the log. */
const A_WEEK = 'max-age=604800, immutable';

const cacheControl = ({ logPublic }: ServedLog, rest: string): string =>
  `${logPublic ? 'public' : 'private'}, ${rest}`;

function answerBytes(ctx: Context, bytes: Uint8Array, caching: string): Answer<never> | undefined {
  return isKnown(ctx, etagOf(Buffer.from(bytes)), caching) ? undefined : { bytes };
}

const checkpointRoute = defineRoute({
  method: 'get',
  path: '/v1/log/checkpoint',
  operationId: 'getCheckpoint',
  summary: 'Returns the newest signed checkpoint of the transparency log',
  description:
    'A C2SP tlog-checkpoint with the cosignatures of the witnesses that were reached. Open to everyone where the operator has set `LOG_PUBLIC`.',
  access: 'audit:read',
  publishable: true,
  query: CommonQuery,
  media: 'text/plain; charset=utf-8',
  data: CheckpointNote,
  errors: ['not_found'],
  holds: MOST_BYTES,
  handle: async (api, _request, ctx) => {
    const note = await api.tiles.readCheckpoint();
    if (note === undefined)
      throw new TurnlogError('not_found', 'The transparency log has no checkpoint yet.');
    return answerBytes(ctx, Buffer.from(note), cacheControl(api, 'no-cache'));
  },
});

/** The path is taken as it came, so that nothing that is escaped in it means another one. */
async function answerTile(api: RouteContext, ctx: Context): Promise<Answer<never> | undefined> {
  const path = ctx.path.slice(PREFIX.length);
  const bytes = parseTilePath(path) && (await api.tiles.read(path));
  if (!bytes) throw new TurnlogError('not_found', 'The transparency log has no such tile.');
  return answerBytes(ctx, bytes, cacheControl(api, A_WEEK));
}

interface TileRoute {
  path: string;
  served: string;
  operationId: string;
  summary: string;
  data: TSchema;
}

const tileRoute = (own: TileRoute): Route =>
  defineRoute({
    ...own,
    method: 'get',
    description: `${own.summary}, as C2SP tlog-tiles has it. Open to everyone where the operator has set \`LOG_PUBLIC\`.`,
    access: 'audit:read',
    publishable: true,
    query: CommonQuery,
    media: 'application/octet-stream',
    errors: ['not_found'],
    holds: MOST_BYTES,
    handle: (api, _request, ctx) => answerTile(api, ctx),
  });

/** Entries come first: the other path would match theirs. */
export const logRoutes = [
  checkpointRoute,
  tileRoute({
    path: '/v1/log/tile/entries/{index}',
    served: '/v1/log/tile/entries/*index',
    operationId: 'getEntries',
    summary: 'Returns a bundle of entries of the transparency log',
    data: Entries,
  }),
  tileRoute({
    path: '/v1/log/tile/{level}/{index}',
    served: '/v1/log/tile/:level/*index',
    operationId: 'getTile',
    summary: 'Returns a tile of the hashes of the transparency log',
    data: Tile,
  }),
];
