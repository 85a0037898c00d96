import { Type } from '../../../shared/domain/jsonSchema.ts';
import type { AgentCatalogue } from '../../../shared/agents/catalogue.ts';
import { sendJson, wantsPretty } from '../http/responses/envelope.ts';
import { encodeJson } from '../http/responses/listResponse.ts';
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

async function serializeDocument(api: Api, context: RouteContext): Promise<SerializedDocument> {
  const document = await openApiDocument(api, context);
  const plain = await encodeJson(document, { account_id: '', pretty: false });
  const pretty = await encodeJson(document, { account_id: '', pretty: true });
  return { plain: compressOnce(plain), pretty: compressOnce(pretty), etag: computeEtag(plain) };
}

/** Serves the OpenAPI document of all other operations, without the envelope. */
export function openApiRoute(api: Api): Route {
  // Built at the first request, in steps: it takes dozens of milliseconds, and has megabytes.
  const documents = new WeakMap<AgentCatalogue, Promise<SerializedDocument>>();
  function documentOf(context: RouteContext): Promise<SerializedDocument> {
    let document = documents.get(context.catalogue);
    if (!document) {
      document = serializeDocument(api, context);
      documents.set(context.catalogue, document);
      document.catch(() => documents.delete(context.catalogue));
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
    handle: async (context, _request, ctx) => {
      const { etag, plain, pretty } = await documentOf(context);
      if (!respondNotModified(ctx, etag, 'no-cache'))
        sendJson(ctx, 200, wantsPretty(ctx) ? pretty : plain);
      return undefined;
    },
  });
}
