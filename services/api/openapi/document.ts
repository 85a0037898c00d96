import { maxOutputTokens } from '../../../shared/agents/validateParameters.ts';
import type { AgentCatalogue } from '../../../shared/agents/catalogue.ts';
import type { Api } from '../http/feature.ts';
import { RESPONSE_HEADERS } from './headers.ts';
import type { SchemaCollection, OfferedNames } from './jsonSchema.ts';
import { describeOperation, tagOf } from './operation.ts';

/** Codes of requests that reach no operation. */
const GENERAL_CODES = ['not_found', 'method_not_allowed'] as const;

const describeApi = ({ errorResponses }: Api): string =>
  [
    'Create agents, list them, and run them in conversations. Every change and every turn is an event that is never rewritten.',
    'The models, tools and UI components that a request may name are listed as this process offers them; another process may be configured differently.',
    'Later releases may add fields to responses; clients must ignore fields that they do not know.',
    'In addition to what each operation lists, with the same body as every failure:',
    ...GENERAL_CODES.map(
      (code) => `${errorResponses[code].status} \`${code}\`: ${errorResponses[code].description}.`,
    ),
  ].join('\n\n');

const SECURITY = {
  apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key' },
  bearer: { type: 'http', scheme: 'bearer', description: 'The same key, as a bearer token' },
};

const offeredNames = ({ models, toolbox, components }: AgentCatalogue): OfferedNames => ({
  models: models.list().map(({ id }) => id),
  tools: toolbox.list().map(({ name }) => name),
  components,
  output_tokens: Math.max(...models.list().map(maxOutputTokens)),
});

/**
 * The OpenAPI 3.1 document of the routes and schemas that serve the API, with the models, tools and
 * components that the process offers. Pure; constant for the lifetime of a process.
 */
export function openApiDocument(api: Api, catalogue: AgentCatalogue) {
  const { routes } = api;
  const collection: SchemaCollection = { offers: offeredNames(catalogue), schemas: {} };
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes)
    (paths[route.path] ??= {})[route.method] = describeOperation(route, api, collection);
  const tags = [...new Set(routes.map(({ path }) => tagOf(path)))];
  return {
    openapi: '3.1.0',
    info: {
      title: 'Turnlog',
      version: '1.0.0',
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
