import { MessageHeaders } from './headers.ts';
import { publicEventSchemas } from '../../../shared/publicEvents/publicEvent.ts';
import type { DataSchema } from './evolution.ts';
import type { Channel } from '../../../shared/publicEvents/schema.ts';
import { HEADERS, toJson, withNamedParts } from './jsonSchemas.ts';

interface Topic {
  address: string;
  title: string;
  key: string;
}

const TOPICS: Readonly<Record<Channel, Topic>> = {
  agents: { address: 'turnlog.agents.v1', title: 'What happens to agents', key: 'The agent id' },
  sessions: {
    address: 'turnlog.sessions.v1',
    title: 'What happens in sessions: every turn of every conversation',
    key: 'The session id',
  },
};

const DESCRIPTION = `Every event of agents and sessions, once and in order, for consumers that read committed messages (\`isolation.level=read_committed\`).

Messages are CloudEvents 1.0 in binary mode: attributes in headers, data as JSON in the value. Messages of one key are in the
order of \`ce_streamrevision\`, without gaps. Ignore headers, fields and types that you do not know: within a version, types only grow.`;

const componentsOf = (type: string): { $ref: string } => ({
  $ref: `#/components/messages/${type}`,
});

const ofChannel = (channel: Channel) =>
  publicEventSchemas.filter((schema) => schema.channel === channel);

const channel = (name: Channel) => ({
  address: TOPICS[name].address,
  title: TOPICS[name].title,
  description: `${TOPICS[name].title}. The name is the default one; an operator may set another. Keyed by ${TOPICS[name].key.toLowerCase()}.`,
  messages: Object.fromEntries(ofChannel(name).map(({ type }) => [type, componentsOf(type)])),
});

const operation = (name: Channel) => ({
  action: 'send',
  summary: `Turnlog publishes ${TOPICS[name].title.toLowerCase()}`,
  channel: { $ref: `#/channels/${name}` },
});

const message = ({ type, channel: name, description }: (typeof publicEventSchemas)[number]) => ({
  name: type,
  title: description,
  contentType: 'application/json',
  headers: { $ref: `#/components/schemas/${HEADERS}` },
  payload: { $ref: `#/components/schemas/${type}` },
  bindings: {
    kafka: { key: { type: 'string', description: TOPICS[name].key }, bindingVersion: '0.5.0' },
  },
});

/** No `$id` here: it would move what the references to the document's other parts start from. */
function componentSchemas(): Record<string, DataSchema> {
  const named: Record<string, DataSchema> = {};
  const component = (schema: object): DataSchema =>
    withNamedParts(toJson(schema), '#/components/schemas/', named);
  const whole = {
    [HEADERS]: component(MessageHeaders),
    ...Object.fromEntries(publicEventSchemas.map(({ type, data }) => [type, component(data)])),
  };
  return { ...whole, ...named };
}

/** The AsyncAPI 3.0 document of the topics, from the schemas that the relay publishes by. */
export const asyncApiDocument = (): object => ({
  asyncapi: '3.0.0',
  info: {
    title: 'Turnlog events',
    version: '1.0.0',
    description: DESCRIPTION,
    license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
  },
  defaultContentType: 'application/json',
  servers: {
    kafka: {
      host: '127.0.0.1:9092',
      protocol: 'kafka',
      description: 'An example; the brokers are those of KAFKA_BROKERS',
    },
  },
  channels: { agents: channel('agents'), sessions: channel('sessions') },
  operations: { publishAgents: operation('agents'), publishSessions: operation('sessions') },
  components: {
    messages: Object.fromEntries(
      publicEventSchemas.map((schema) => [schema.type, message(schema)]),
    ),
    schemas: componentSchemas(),
  },
});
