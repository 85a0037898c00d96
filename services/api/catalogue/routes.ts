import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
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

const listToolsRoute = defineRoute({
  method: 'get',
  path: '/v1/tools',
  operationId: 'listTools',
  summary: 'Lists the tools that an agent may name',
  access: 'key',
  query: CommonQuery,
  data: ToolList,
  errors: [],
  handle: ({ catalogue }) => Promise.resolve({ data: [...catalogue.toolbox.list()] }),
});

export const catalogueFeature = defineFeature({
  routes: [listModelsRoute, listToolsRoute],
  tags: { models: 'Models that agents may use', tools: 'Tools that agents may use' },
});
