import type { TSchema } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { bodyMediaTypes } from '../http/middleware/jsonBody.ts';
import type { Route } from '../http/route.ts';
import { CommonQuery, envelopeSchema } from './commonSchemas.ts';
import type { Api } from '../http/feature.ts';
import { failureResponses } from './failures.ts';
import {
  commonHeaders,
  headerParameters,
  etagHeader,
  linkHeader,
  locationHeader,
  preferenceAppliedHeader,
  proofLinkHeader,
  idempotencyReplayedHeader,
  visibleHeader,
} from './headers.ts';
import { addSchema, type SchemaCollection } from './jsonSchema.ts';

const jsonContent = (schema: object) => ({ 'application/json': { schema } });

/**
 * OpenAPI 3.1 can't describe the events of a stream; `contentSchema` names their type for clients
 * that parse them. Where a stream is the only response, generators would take a type for that of
 * each event.
 */
const streamContent = ({ events, media }: Route, collection: SchemaCollection) =>
  events && {
    'text/event-stream': {
      schema: {
        ...(media === undefined && { type: 'string' }),
        description: events.description,
        ...(events.schema && {
          contentMediaType: 'text/event-stream',
          contentSchema: addSchema(events.schema, collection),
        }),
      },
    },
  };

const byteContent = ({ media, alternateMedia, data }: Route, collection: SchemaCollection) =>
  Object.fromEntries(
    [media, alternateMedia].flatMap((type) =>
      type === undefined ? [] : [[type.split(';')[0]!, { schema: addSchema(data, collection) }]],
    ),
  );

function successResponse(route: Route, collection: SchemaCollection) {
  const { links } = route;
  return {
    description: 'Success',
    headers: {
      ...commonHeaders(route),
      ...visibleHeader(route, 200),
      ...idempotencyReplayedHeader(route),
      ...linkHeader(route),
      ...proofLinkHeader(route),
      ...preferenceAppliedHeader(route),
      ...((route.ifNoneMatch || route.returnsEtag) && { ETag: etagHeader }),
      ...(route.returnsLocation && { Location: locationHeader }),
    },
    content: {
      ...(route.media === undefined
        ? jsonContent(
            addSchema(
              envelopeSchema(route.operationId, route.data, 200, route.envelope),
              collection,
            ),
          )
        : byteContent(route, collection)),
      ...streamContent(route, collection),
    },
    ...(links && { links }),
  };
}

const endedResponse = (route: Route) => ({
  description: '`Last-Event-ID` is the end of the stream',
  headers: commonHeaders(route),
});

/** For operations whose only success status is 202. */
const replayedIfAlwaysAccepted = (route: Route) =>
  route.accepted === route.data ? idempotencyReplayedHeader(route) : {};

const acceptedResponse = (route: Route, data: TSchema, collection: SchemaCollection) => ({
  description: 'The operation continues in the background, independently of the client',
  headers: {
    ...commonHeaders(route),
    ...visibleHeader(route, 202),
    ...replayedIfAlwaysAccepted(route),
    ...preferenceAppliedHeader(route),
    ...(route.returnsEtag && { ETag: etagHeader }),
    Location: locationHeader,
  },
  content: jsonContent(addSchema(envelopeSchema(route.operationId, data, 202), collection)),
});

const notModifiedResponse = (route: Route) => ({
  description: 'The content that `If-None-Match` names is current; the response has no body',
  headers: { ...commonHeaders(route), ...linkHeader(route), ETag: etagHeader },
});

function parameter(
  name: string,
  where: 'path' | 'query' | 'header',
  schema: TSchema,
  collection: SchemaCollection,
) {
  const { description, ...rest } = addSchema(schema, collection);
  return {
    name,
    in: where,
    required: where === 'path' || (where === 'query' && !Type.IsOptional(schema)),
    ...(description !== undefined && { description }),
    schema: rest,
  };
}

function parameters(route: Route, api: Api, collection: SchemaCollection) {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) =>
    parameter(name!, 'path', api.pathParameters[name!]!, collection),
  );
  const inQuery = Object.entries((route.query ?? CommonQuery).properties).map(([name, schema]) =>
    parameter(name, 'query', schema, collection),
  );
  const inHeader = Object.entries(route.headers ?? {}).map(([name, schema]) =>
    parameter(name, 'header', schema, collection),
  );
  return [...inPath, ...inQuery, ...inHeader, ...headerParameters(route)];
}

/** The tag of a path: its first word. */
export const tagOf = (path: string): string =>
  path.split('/').find((part) => /^[a-z]{3,}$/.test(part))!;

/** Describes a route as an OpenAPI operation. */
export const describeOperation = (route: Route, api: Api, collection: SchemaCollection) => ({
  operationId: route.operationId,
  summary: route.summary,
  description: `${route.description ?? `${route.summary}.`}${route.chatTarget ? ' Accepts chat tokens.' : ''}`,
  tags: [tagOf(route.path)],
  security: route.access === 'open' ? [] : [{ apiKey: [] }, { bearer: [] }],
  parameters: parameters(route, api, collection),
  ...(route.body && {
    requestBody: {
      required: route.bodyOptional !== true,
      content: Object.fromEntries(
        bodyMediaTypes(route.method).map((type) => [
          type,
          { schema: addSchema(route.body!, collection) },
        ]),
      ),
    },
  }),
  responses: {
    // Operations that always respond with 202 have no 200.
    ...(route.accepted !== route.data && { 200: successResponse(route, collection) }),
    ...(route.events?.ends && { 204: endedResponse(route) }),
    ...(route.accepted && { 202: acceptedResponse(route, route.accepted, collection) }),
    ...(route.ifNoneMatch && { 304: notModifiedResponse(route) }),
    ...failureResponses(route, api, commonHeaders(route), collection),
  },
});
