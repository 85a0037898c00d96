import type { AgentCatalogue } from '../../../shared/agents/catalogue.ts';
import { createPause } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import type { Api } from '../http/feature.ts';
import { RESPONSE_HEADERS } from './headers.ts';
import type { SchemaCollection, OfferedNames } from './jsonSchema.ts';
import { describeOperation, tagOf } from './operation.ts';

/** Codes of requests that reach no operation. */
const GENERAL_CODES = ['not_found', 'method_not_allowed'] as const;

const describeApi = ({ errorResponses }: Api): string =>
  [
    'Create agents, list them, and run them in conversations. Every change and every turn is an event that is never rewritten.',
    '`GET /v1/models` and `GET /v1/tools` list the models and tools that a request may name.',
    'Later releases may add fields to responses; clients must ignore fields that they do not know.',
    'In addition to what each operation lists, with the same body as every failure:',
    ...GENERAL_CODES.map(
      (code) => `${errorResponses[code].status} \`${code}\`: ${errorResponses[code].description}.`,
    ),
  ].join('\n\n');

const SECURITY = {
  apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key' },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'The same key, or a chat token where the operation accepts one',
  },
};

const offeredNames = ({ models, toolbox }: AgentCatalogue): OfferedNames => ({
  models: models.list().map(({ id }) => id),
  tools: toolbox.list().map(({ name }) => name),
});

/**
 * The OpenAPI 3.1 document of the routes and schemas that serve the API. Its examples of models and
 * tools are those of the process. Constant for the lifetime of a process. Yields to the event loop
 * between operations.
 */
export async function openApiDocument(
  api: Api,
  { catalogue, version }: { catalogue: AgentCatalogue; version: string },
) {
  const { routes } = api;
  const collection: SchemaCollection = { offers: offeredNames(catalogue), schemas: {} };
  const paths: Record<string, Record<string, unknown>> = {};
  const pause = createPause(() => '');
  for (const route of routes) {
    await pause();
    (paths[route.path] ??= {})[route.method] = describeOperation(route, api, collection);
  }
  const tags = [...new Set(routes.map(({ path }) => tagOf(path)))];
  return {
    openapi: '3.1.0',
    info: {
      title: 'Turnlog',
      version,
      summary: 'Event-sourced AI agents',
      description: describeApi(api),
      contact: { name: 'The operator of this service' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The service that serves this document' }],
    tags: tags.map((name) => ({ name, description: api.tags[name] })),
    paths,
    components: {
      securitySchemes: SECURITY,
      headers: RESPONSE_HEADERS,
      schemas: collection.schemas,
    },
  };
}
