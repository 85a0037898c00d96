import { Type } from '../../../shared/domain/jsonSchema.ts';
import type { AgentCatalogue } from '../../../shared/agents/catalogue.ts';
import { jsonText, sendJson, wantsPretty } from '../http/responses/envelope.ts';
import { compressOnce } from '../http/middleware/compressed.ts';
import { computeEtag, respondNotModified } from '../http/responses/etag.ts';
import { openApiDocument } from './document.ts';
import type { RouteContext } from '../context.ts';
import type { Api } from '../http/feature.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { CommonQuery } from './commonSchemas.ts';

interface SerializedDocument {
  plain: Buffer;
  pretty: Buffer;
  etag: string;
}

function serializeDocument(document: object): SerializedDocument {
  const plain = Buffer.from(jsonText(document, false));
  const pretty = Buffer.from(jsonText(document, true));
  return { plain: compressOnce(plain), pretty: compressOnce(pretty), etag: computeEtag(plain) };
}

/** Serves the OpenAPI document of all other operations, without the envelope. */
export function openApiRoute(api: Api): Route {
  // Built at the first request: it takes milliseconds, and has a hundred kilobytes.
  const documents = new WeakMap<AgentCatalogue, SerializedDocument>();
  function documentOf(context: RouteContext): SerializedDocument {
    let document = documents.get(context.catalogue);
    if (!document) {
      document = serializeDocument(openApiDocument(api, context));
      documents.set(context.catalogue, document);
    }
    return document;
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
    handle: (context, _request, ctx) => {
      const { etag, plain, pretty } = documentOf(context);
      if (!respondNotModified(ctx, etag, 'no-cache'))
        sendJson(ctx, 200, wantsPretty(ctx) ? pretty : plain);
      return Promise.resolve(undefined);
    },
  });
}
