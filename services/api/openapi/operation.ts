import type { TSchema } from 'typebox';
import type { Route } from '../route.ts';
import { AgentId, CommonQuery, SessionId } from '../schemas/common.ts';
import { TileIndex, TileLevel } from '../schemas/log.ts';
import { failures } from './failures.ts';
import { anyAnswer, etag, link, visible } from './headers.ts';
import { described, type Collection } from './jsonSchema.ts';
import { LINKS } from './links.ts';

/** The parameters that paths have. */
const IN_PATH: Readonly<Record<string, TSchema>> = {
  agentId: AgentId,
  sessionId: SessionId,
  level: TileLevel,
  index: TileIndex,
};

/** The operations that answer `If-None-Match`. */
const REVALIDATED = new Set(['listAgents', 'getAgent', 'getCheckpoint', 'getTile', 'getEntries']);

/** Those that `If-Match` makes conditional. */
const MATCHED = new Set(['replaceAgent', 'changeAgent', 'deleteAgent']);
/** Those that answer with an `ETag`. */
const TAGGED = new Set([...REVALIDATED, 'replaceAgent', 'changeAgent']);

const json = (schema: object) => ({ 'application/json': { schema } });

const envelope = ({ data }: Route, collection: Collection) =>
  json({
    type: 'object',
    required: ['success', 'data', 'status'],
    properties: {
      success: { type: 'boolean', const: true },
      data: described(data, collection),
      status: { type: 'integer', const: 200, description: 'Mirrors the HTTP status' },
    },
  });

const bytes = ({ media, data }: Route, collection: Collection) => ({
  [media!.split(';')[0]!]: { schema: described(data, collection) },
});

function success(route: Route, collection: Collection) {
  const links = LINKS[route.operationId];
  return {
    description: 'Success',
    headers: {
      ...anyAnswer(route),
      ...visible(route, 200),
      ...link(route),
      ...(TAGGED.has(route.operationId) && { ETag: etag }),
    },
    content: route.media === undefined ? envelope(route, collection) : bytes(route, collection),
    ...(links && { links }),
  };
}

const unchanged = (route: Route) => ({
  description: 'What `If-None-Match` names is still what would be answered; there is no body',
  headers: { ...anyAnswer(route), ...link(route), ETag: etag },
});

function parameter(name: string, where: 'path' | 'query', schema: object, collection: Collection) {
  const { description, ...rest } = described(schema, collection);
  return {
    name,
    in: where,
    required: where === 'path',
    ...(description !== undefined && { description }),
    schema: rest,
  };
}

const ifNoneMatch = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'The `ETag` of an answer that the client has kept',
  schema: { type: 'string' },
};

const ifMatch = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'The `ETag` of the agent as the client knows it, or several; where it is at another revision, nothing is recorded',
  schema: { type: 'string', examples: ['"0-1b2m2y8asgtpgamy7phcfg"'] },
};

function parameters(route: Route, collection: Collection) {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) =>
    parameter(name!, 'path', IN_PATH[name!]!, collection),
  );
  const inQuery = Object.entries((route.query ?? CommonQuery).properties).map(([name, schema]) =>
    parameter(name, 'query', schema, collection),
  );
  return [
    ...inPath,
    ...inQuery,
    ...(REVALIDATED.has(route.operationId) ? [ifNoneMatch] : []),
    ...(MATCHED.has(route.operationId) ? [ifMatch] : []),
  ];
}

/** The tag of a path: what the path is about. */
export const tagOf = (path: string): string =>
  path.split('/').find((part) => /^[a-z]{3,}$/.test(part))!;

/** A route as the document describes it. */
export const operation = (route: Route, collection: Collection) => ({
  operationId: route.operationId,
  summary: route.summary,
  description: route.description ?? `${route.summary}.`,
  tags: [tagOf(route.path)],
  security: route.access === 'open' ? [] : [{ apiKey: [] }, { bearer: [] }],
  parameters: parameters(route, collection),
  ...(route.body && {
    requestBody: { required: true, content: json(described(route.body, collection)) },
  }),
  responses: {
    200: success(route, collection),
    ...(REVALIDATED.has(route.operationId) && { 304: unchanged(route) }),
    ...failures(route, anyAnswer(route), collection),
  },
});
