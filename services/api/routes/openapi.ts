import { Type } from 'typebox';
import { jsonText, sendJson, wantsPretty } from '../envelope.ts';
import { openApiDocument } from '../openapi.ts';
import { defineRoute, type Route } from '../route.ts';
import { CommonQuery } from '../schemas/common.ts';

/**
 * Serves the description of all operations but itself, as a document of its own, without the
 * envelope.
 */
export const openApiRoute = (operations: readonly Route[]): Route =>
  defineRoute({
    method: 'get',
    path: '/openapi.json',
    operationId: 'getOpenApi',
    summary: 'Returns the OpenAPI 3.1 document',
    access: 'open',
    query: CommonQuery,
    data: Type.Unknown(),
    errors: [],
    handle: ({ catalogue }, _request, ctx) => {
      sendJson(ctx, 200, jsonText(openApiDocument(operations, catalogue), wantsPretty(ctx)));
      return Promise.resolve(undefined);
    },
  });
