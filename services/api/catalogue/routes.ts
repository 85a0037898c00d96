import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { SLICE_BYTES } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import type { PageOf } from '../../../shared/ports/readModels.ts';
import type { ToolInfo } from '../../../shared/ports/toolbox.ts';
import type { RouteContext } from '../context.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { destroyOnError } from '../http/connection/destroyOnError.ts';
import { sendJson, setNextLink, wantsPretty } from '../http/responses/envelope.ts';
import { renderList, type ListFormat } from '../http/responses/listResponse.ts';
import { unknownPageError } from '../http/errors/errorResponses.ts';
import { namedPageQuery } from '../openapi/commonSchemas.ts';

const Price = Type.Object(
  {
    input_per_million: Type.String({ description: 'Price of prompt tokens, a decimal' }),
    output_per_million: Type.String({ description: 'Price of completion tokens, a decimal' }),
    currency: Type.String({ description: 'ISO 4217, the same of all models' }),
  },
  { title: 'Price', description: "Prices of a model's tokens" },
);

const Model = Type.Object(
  {
    id: Type.String(),
    provider: Type.String(),
    context_window: Type.Integer({ description: 'Tokens that the prompt and the answer share' }),
    max_output_tokens: Type.Optional(Type.Integer()),
    fallbacks: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Models to call instead, in this order, while this one fails',
      }),
    ),
    price: Type.Optional(Price),
  },
  { title: 'Model', description: 'A model that an agent may name' },
);

const Tool = Type.Object(
  {
    name: Type.String(),
    description: Type.String(),
    parameters: Type.Record(Type.String(), Type.Unknown(), {
      description:
        'JSON Schema of the arguments; empty for a name that stands for all tools of a server',
    }),
  },
  { title: 'Tool', description: 'A tool that an agent may name' },
);

const ModelList = Type.Array(Model);
const ToolList = Type.Array(Tool);

const ModelListQuery = Type.Object(namedPageQuery('models'), {
  additionalProperties: false,
});
const ToolListQuery = Type.Object(namedPageQuery('tools'), { additionalProperties: false });

/**
 * The page of a list in memory, and its `Link`. Throws `position_unknown` if the list no longer has the
 * entry before it.
 */
function pageOf<Entry>(
  entries: readonly Entry[],
  nameOf: (entry: Entry) => string,
  { limit = Infinity, after }: { limit?: number; after?: string },
  ctx: Context,
): Entry[] {
  const start = after === undefined ? 0 : entries.findIndex((entry) => nameOf(entry) === after) + 1;
  if (after !== undefined && start === 0) throw unknownPageError();
  const page = entries.slice(start, start + limit);
  if (start + page.length < entries.length) setNextLink(ctx, nameOf(page.at(-1)!));
  return page;
}

const listModelsRoute = defineRoute({
  method: 'get',
  path: '/v1/models',
  operationId: 'listModels',
  summary: 'Lists the models that an agent may name',
  access: 'key',
  query: ModelListQuery,
  data: ModelList,
  errors: ['position_unknown'],
  handle: async ({ catalogue }, { query }, ctx) => {
    const models = pageOf(catalogue.models.list(), ({ id }) => id, query, ctx);
    return { data: models.map(({ upstream_model: _upstream, ...model }) => model) };
  },
});

const TOOL_LIST: ListFormat<ToolInfo> = {
  emptyData: [],
  present: (tool) => tool,
  cursorOf: ({ name }) => name,
};

/** Tools that are read at a time, and the memory of their schemas and of the text that is sent. */
const TOOLS_READ = 4;
const TOOL_LIST_BYTES = 6 * SLICE_BYTES;

/**
 * Sends the tools with these names in slices: servers may have thousands, with large schemas. They are read a
 * few at a time, because a slow client would keep lists in memory that servers have replaced. Those that a
 * server no longer has are left out.
 */
async function sendToolList(
  { catalogue: { toolbox }, responseMemory, logger }: RouteContext,
  names: readonly string[],
  account_id: string,
  ctx: Context,
): Promise<undefined> {
  let next = 0;
  async function read(): Promise<PageOf<ToolInfo>> {
    const due = names.slice(next, next + TOOLS_READ);
    next += due.length;
    return { rows: due.flatMap((name) => toolbox.find(name) ?? []), more: next < names.length };
  }

  const pieces = renderList(read, TOOL_LIST, { account_id, pretty: wantsPretty(ctx) });
  const permit = await responseMemory.acquire(account_id, TOOL_LIST_BYTES, ctx.res);
  await permit.holdUntilSent(TOOL_LIST_BYTES);
  const body = destroyOnError([], pieces, logger, ctx);
  sendJson(ctx, 200, Readable.from(body, { objectMode: false }));
}

const listToolsRoute = defineRoute({
  method: 'get',
  path: '/v1/tools',
  operationId: 'listTools',
  summary: 'Lists the tools that an agent may name',
  access: 'key',
  query: ToolListQuery,
  data: ToolList,
  errors: ['position_unknown'],
  handle: async (api, { actor: { account_id }, query }, ctx) => {
    const page = pageOf(api.catalogue.toolbox.list(), TOOL_LIST.cursorOf, query, ctx);
    return sendToolList(api, page.map(TOOL_LIST.cursorOf), account_id, ctx);
  },
});

export const catalogueFeature = defineFeature({
  routes: [listModelsRoute, listToolsRoute],
  tags: { models: 'Models that agents may use', tools: 'Tools that agents may use' },
});
