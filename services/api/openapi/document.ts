import { maxOutputTokens } from '../../../shared/agents/validateParameters.ts';
import type { AgentCatalogue } from '../../../shared/agents/catalogue.ts';
import { ERROR_ANSWERS } from '../http/errors/errorResponses.ts';
import { HEADERS } from './headers.ts';
import type { Collection, Offers } from './jsonSchema.ts';
import { operation, tagOf } from './operation.ts';
import type { Route } from '../http/route.ts';

/** What is answered where there is no operation to describe it at. */
const elsewhere = (['not_found', 'method_not_allowed'] as const).map(
  (code) => `${ERROR_ANSWERS[code].status} \`${code}\`: ${ERROR_ANSWERS[code].description}.`,
);

const DESCRIPTION = [
  'Create agents, list them, and run them in conversations. Every change and every turn is an event that is never rewritten.',
  'What a request may choose from (models, tools, UI components) is listed as this process offers it: another one may be configured otherwise.',
  'Answers get further fields in later releases; a client skips those that it does not know.',
  'Beside what each operation answers, with the same body as every failure:',
  ...elsewhere,
].join('\n\n');

const TAGS: Readonly<Record<string, string>> = {
  agents: 'Stored configurations, and their runs',
  sessions: 'Conversations: transcripts, and the events that they are made of',
  export: 'Sessions in the formats of others',
  events: 'What happened to agents and sessions, as it happens',
  replays: 'Recorded sessions that are run again, and how they compare',
  usage: 'What runs took',
  webhooks: 'Addresses that events are sent to',
  models: 'What agents may think with',
  tools: 'What agents may use',
  log: 'The transparency log: its checkpoint and its tiles',
  health: 'How the process is',
};

const SECURITY = {
  apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key' },
  bearer: { type: 'http', scheme: 'bearer', description: 'The same key, as a bearer token' },
};

const offersOf = ({ models, toolbox, components }: AgentCatalogue): Offers => ({
  models: models.list().map(({ id }) => id),
  tools: toolbox.list().map(({ name }) => name),
  components,
  output_tokens: Math.max(...models.list().map(maxOutputTokens)),
});

/**
 * The API as an OpenAPI 3.1 document, made from the same routes and schemas that serve it, with
 * what the process offers to agents. Pure; the same for as long as a process lives.
 */
export function openApiDocument(routes: readonly Route[], catalogue: AgentCatalogue) {
  const collection: Collection = { offers: offersOf(catalogue), schemas: {} };
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes)
    (paths[route.path] ??= {})[route.method] = operation(route, collection);
  const tags = [...new Set(routes.map(({ path }) => tagOf(path)))];
  return {
    openapi: '3.1.0',
    info: {
      title: 'Turnlog',
      version: '1.0.0',
      summary: 'Event-sourced AI agents',
      description: DESCRIPTION,
      contact: { name: 'Whoever operates this service' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The service that serves this document' }],
    tags: tags.map((name) => ({ name, description: TAGS[name] })),
    paths,
    components: { securitySchemes: SECURITY, headers: HEADERS, schemas: collection.schemas },
  };
}
