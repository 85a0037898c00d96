import type { Context } from 'koa';
import type { TSchema } from 'typebox';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { isOfEmptyTree } from '../../../shared/transparency/tlog/checkpoint.ts';
import { parseTilePath } from '../../../shared/transparency/tlog/tiles.ts';
import type { RouteContext, TransparencyLogContext } from '../context.ts';
import { computeEtag, respondNotModified } from '../http/responses/etag.ts';
import { defineRoute, type Answer, type Route } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { CheckpointNote, Entries, Tile, TileIndex, TileLevel } from './schemas.ts';
import { defineFeature } from '../http/feature.ts';

const PREFIX = '/v1/log/';
/** A bundle of 256 entries is the largest response. */
const MAX_RESPONSE_BYTES = 32 * 1_024;
/** The content of a tile never changes, unless an operator restores the log. */
const IMMUTABLE_FOR_A_WEEK = 'max-age=604800, immutable';

const cacheControl = ({ logPublic }: TransparencyLogContext, rest: string): string =>
  `${logPublic ? 'public' : 'private'}, ${rest}`;

function cachedBytes(ctx: Context, bytes: Uint8Array, caching: string): Answer<never> | undefined {
  return respondNotModified(ctx, computeEtag(Buffer.from(bytes)), caching) ? undefined : { bytes };
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
  ifNoneMatch: true,
  errors: ['not_found'],
  bufferBytes: MAX_RESPONSE_BYTES,
  handle: async (api, _request, ctx) => {
    const note = await api.tiles.readCheckpoint();
    if (note === undefined || isOfEmptyTree(note))
      throw new TurnlogError('not_found', 'The transparency log has no checkpoint yet.');
    return cachedBytes(ctx, Buffer.from(note), cacheControl(api, 'no-cache'));
  },
});

/** Uses the raw path, so that escapes in it can't name another tile. */
async function readTile(api: RouteContext, ctx: Context): Promise<Answer<never> | undefined> {
  const path = ctx.path.slice(PREFIX.length);
  const bytes = parseTilePath(path) && (await api.tiles.read(path));
  if (!bytes) throw new TurnlogError('not_found', 'The transparency log has no such tile.');
  return cachedBytes(ctx, bytes, cacheControl(api, IMMUTABLE_FOR_A_WEEK));
}

interface TileRoute {
  path: string;
  routerPath: string;
  operationId: string;
  summary: string;
  data: TSchema;
}

const tileRoute = (tile: TileRoute): Route =>
  defineRoute({
    ...tile,
    method: 'get',
    description: `${tile.summary}, as C2SP tlog-tiles has it. Open to everyone where the operator has set \`LOG_PUBLIC\`.`,
    access: 'audit:read',
    publishable: true,
    query: CommonQuery,
    media: 'application/octet-stream',
    ifNoneMatch: true,
    errors: ['not_found'],
    bufferBytes: MAX_RESPONSE_BYTES,
    handle: (api, _request, ctx) => readTile(api, ctx),
  });

/** Entries come first: the path of tiles would match theirs. */
const tileRoutes = [
  tileRoute({
    path: '/v1/log/tile/entries/{index}',
    routerPath: '/v1/log/tile/entries/*index',
    operationId: 'getEntries',
    summary: 'Returns a bundle of entries of the transparency log',
    data: Entries,
  }),
  tileRoute({
    path: '/v1/log/tile/{level}/{index}',
    routerPath: '/v1/log/tile/:level/*index',
    operationId: 'getTile',
    summary: 'Returns a tile of the hashes of the transparency log',
    data: Tile,
  }),
];

export const transparencyFeature = defineFeature({
  routes: [checkpointRoute, ...tileRoutes],
  tags: { log: 'The transparency log: its checkpoint and its tiles' },
  pathParameters: { level: TileLevel, index: TileIndex },
});
