import { Type, type TSchema } from 'typebox';
import type { Route } from '../http/route.ts';
import { AgentId, CommonQuery, ReplayId, SessionId, WebhookId } from './commonSchemas.ts';
import { TileIndex, TileLevel } from '../transparency/schemas.ts';
import { TurnNumber } from '../sessions/turnSchemas.ts';
import { failures } from './failures.ts';
import {
  anyAnswer,
  etag,
  link,
  location,
  preferenceApplied,
  replayed,
  visible,
} from './headers.ts';
import { headerParameters, REVALIDATED, TAGGED } from './headerParameters.ts';
import { described, type Collection } from './jsonSchema.ts';
import { LINKS } from './links.ts';

/** The parameters that paths have. */
const IN_PATH: Readonly<Record<string, TSchema>> = {
  agentId: AgentId,
  replayId: ReplayId,
  sessionId: SessionId,
  webhookId: WebhookId,
  level: TileLevel,
  index: TileIndex,
  turn: TurnNumber,
};

const json = (schema: object) => ({ 'application/json': { schema } });

const envelope = (data: TSchema, status: number, collection: Collection) =>
  json({
    type: 'object',
    required: ['success', 'data', 'status'],
    properties: {
      success: { type: 'boolean', const: true },
      data: described(data, collection),
      status: { type: 'integer', const: status, description: 'Mirrors the HTTP status' },
    },
  });

/**
 * A stream of events, of which OpenAPI 3.1 can say no more. Where it is the only answer, a type would
 * be taken for that of each event.
 */
const stream = ({ events, media }: Route) =>
  events && {
    'text/event-stream': {
      schema: {
        ...(media === undefined && { type: 'string' }),
        description: events.description,
      },
    },
  };

const bytes = ({ media, orMedia, data }: Route, collection: Collection) =>
  Object.fromEntries(
    [media, orMedia].flatMap((type) =>
      type === undefined ? [] : [[type.split(';')[0]!, { schema: described(data, collection) }]],
    ),
  );

function success(route: Route, collection: Collection) {
  const links = LINKS[route.operationId];
  return {
    description: 'Success',
    headers: {
      ...anyAnswer(route),
      ...visible(route, 200),
      ...replayed(route),
      ...link(route),
      ...preferenceApplied(route),
      ...(TAGGED.has(route.operationId) && { ETag: etag }),
    },
    content: {
      ...(route.media === undefined
        ? envelope(route.data, 200, collection)
        : bytes(route, collection)),
      ...stream(route),
    },
    ...(links && { links }),
  };
}

const ended = (route: Route) => ({
  description: '`Last-Event-ID` names the end of the stream: there is no more',
  headers: anyAnswer(route),
});

/** Of what is answered with nothing but 202. */
const replayedWhereAlone = (route: Route) => (route.accepted === route.data ? replayed(route) : {});

const accepted = (route: Route, data: TSchema, collection: Collection) => ({
  description: 'It goes on, and does not depend on its client any more',
  headers: {
    ...anyAnswer(route),
    ...visible(route, 202),
    ...replayedWhereAlone(route),
    ...preferenceApplied(route),
    Location: location,
  },
  content: envelope(data, 202, collection),
});

const unchanged = (route: Route) => ({
  description: 'What `If-None-Match` names is still what would be answered; there is no body',
  headers: { ...anyAnswer(route), ...link(route), ETag: etag },
});

function parameter(
  name: string,
  where: 'path' | 'query' | 'header',
  schema: TSchema,
  collection: Collection,
) {
  const { description, ...rest } = described(schema, collection);
  return {
    name,
    in: where,
    required: where === 'path' || (where === 'query' && !Type.IsOptional(schema)),
    ...(description !== undefined && { description }),
    schema: rest,
  };
}

function parameters(route: Route, collection: Collection) {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) =>
    parameter(name!, 'path', IN_PATH[name!]!, collection),
  );
  const inQuery = Object.entries((route.query ?? CommonQuery).properties).map(([name, schema]) =>
    parameter(name, 'query', schema, collection),
  );
  const inHeader = Object.entries(route.headers ?? {}).map(([name, schema]) =>
    parameter(name, 'header', schema, collection),
  );
  return [...inPath, ...inQuery, ...inHeader, ...headerParameters(route)];
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
    requestBody: {
      required: route.bodyOptional !== true,
      content: json(described(route.body, collection)),
    },
  }),
  responses: {
    // Where what is accepted is all there is to say, nothing is answered with 200.
    ...(route.accepted !== route.data && { 200: success(route, collection) }),
    ...(route.events?.ends && { 204: ended(route) }),
    ...(route.accepted && { 202: accepted(route, route.accepted, collection) }),
    ...(REVALIDATED.has(route.operationId) && { 304: unchanged(route) }),
    ...failures(route, anyAnswer(route), collection),
  },
});
