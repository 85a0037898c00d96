import { Type } from 'typebox';
import { jsonText, sendJson, wantsPretty } from '../envelope.ts';
import { etagOf, isKnown } from '../etag.ts';
import { openApiDocument } from '../openapi.ts';
import { defineRoute, type Route } from '../route.ts';
import { CommonQuery } from '../schemas/common.ts';

/**
 * Serves the description of all operations but itself, as a document of its own, without the
 * envelope.
 */
export function openApiRoute(operations: readonly Route[]): Route {
  // Made once, at the first request: it takes milliseconds, and has a hundred kilobytes.
  let made: ReturnType<typeof make> | undefined;
  function make() {
    const document = openApiDocument(operations);
    const plain = Buffer.from(jsonText(document, false));
    return { plain, pretty: Buffer.from(jsonText(document, true)), etag: etagOf(plain) };
  }
  return defineRoute({
    method: 'get',
    path: '/openapi.json',
    operationId: 'getOpenApi',
    summary: 'Returns the OpenAPI 3.1 document',
    access: 'open',
    query: CommonQuery,
    data: Type.Unknown(),
    errors: [],
    handle: (_api, _request, ctx) => {
      const { etag, plain, pretty } = (made ??= make());
      if (!isKnown(ctx, etag, 'no-cache')) sendJson(ctx, 200, wantsPretty(ctx) ? pretty : plain);
      return Promise.resolve(undefined);
    },
  });
}
