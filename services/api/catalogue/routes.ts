import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { SLICE_BYTES } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import type { ToolInfo } from '../../../shared/ports/toolbox.ts';
import type { RouteContext } from '../context.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { destroyOnError } from '../http/connection/destroyOnError.ts';
import { sendJson, wantsPretty } from '../http/responses/envelope.ts';
import { renderList, type ListFormat } from '../http/responses/listResponse.ts';
import { ModelList, ToolList } from './schemas.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';

const listModelsRoute = defineRoute({
  method: 'get',
  path: '/v1/models',
  operationId: 'listModels',
  summary: 'Lists the models that an agent may name',
  access: 'key',
  query: CommonQuery,
  data: ModelList,
  errors: [],
  handle: ({ catalogue }) =>
    Promise.resolve({
      data: catalogue.models.list().map(({ upstream_model: _upstream, ...model }) => model),
    }),
});

const TOOL_LIST: ListFormat<ToolInfo> = {
  emptyData: [],
  present: (tool) => tool,
  cursorOf: ({ name }) => name,
};

/** Sends the tools in slices: servers may have thousands, with large schemas. */
async function sendToolList(
  { catalogue, responseMemory, logger }: RouteContext,
  account_id: string,
  ctx: Context,
): Promise<undefined> {
  const rows = catalogue.toolbox.list();
  const to = { account_id, pretty: wantsPretty(ctx) };
  const pieces = renderList(() => Promise.resolve({ rows: [...rows], more: false }), TOOL_LIST, to);
  responseMemory.holdUntilSent(account_id, 2 * SLICE_BYTES, ctx.res);
  const body = destroyOnError([], pieces, logger, ctx);
  sendJson(ctx, 200, Readable.from(body, { objectMode: false }));
}

const listToolsRoute = defineRoute({
  method: 'get',
  path: '/v1/tools',
  operationId: 'listTools',
  summary: 'Lists the tools that an agent may name',
  access: 'key',
  query: CommonQuery,
  data: ToolList,
  errors: [],
  handle: (api, { actor: { account_id } }, ctx) => sendToolList(api, account_id, ctx),
});

export const catalogueFeature = defineFeature({
  routes: [listModelsRoute, listToolsRoute],
  tags: { models: 'Models that agents may use', tools: 'Tools that agents may use' },
});
