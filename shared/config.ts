import { Ajv2020 } from 'ajv/dist/2020.js';
import { Type, type Static } from 'typebox';
import { TurnlogError, type ErrorDetail } from './errors.ts';

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const SASL_MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const;

const TOPIC = '^[\\w.-]{1,230}$';

/** Every option: one environment variable each. An empty variable counts as absent. */
export const ConfigSchema = Type.Object(
  {
    HOST: Type.String({ default: '127.0.0.1', description: 'Address to listen on' }),
    PORT: Type.Integer({
      default: 3000,
      minimum: 0,
      maximum: 65535,
      description: 'Port to listen on; 0 takes a free one',
    }),
    DATA_DIR: Type.String({
      default: './data',
      description: 'Folder of the embedded event store and read models',
    }),
    EVENTSTOREDB_URL: Type.Optional(
      Type.String({
        pattern: '^esdb(\\+discover)?://',
        description:
          'Connection string of an EventStoreDB or KurrentDB cluster that keeps the log instead of the embedded store',
      }),
    ),
    DATABASE_URL: Type.Optional(
      Type.String({
        pattern: '^postgres(ql)?://',
        description:
          'Connection string of a PostgreSQL database that keeps the read models, so that any number of processes can share them; needs EVENTSTOREDB_URL',
      }),
    ),
    OPENAI_API_KEY: Type.Optional(
      Type.String({
        description: 'Key of the provider `openai`; set alone, it offers a set of OpenAI models',
      }),
    ),
    OPENAI_BASE_URL: Type.Optional(
      Type.String({
        pattern: '^https?://',
        description: 'Base URL of the provider `openai`, for any OpenAI-compatible server',
      }),
    ),
    MODELS_FILE: Type.Optional(
      Type.String({ description: 'JSON file with the providers and models to offer' }),
    ),
    COMPONENTS: Type.String({
      default: 'Chat',
      pattern: '^[^,\\s]+(,[^,\\s]+)*$',
      description:
        'UI components that agents may name, separated by commas; the first is the default',
    }),
    BOOTSTRAP_API_KEY: Type.Optional(
      Type.String({
        minLength: 16,
        maxLength: 256,
        pattern: '^[!-~]+$',
        description:
          'Issued to the account `default` when no key exists yet, 16 to 256 visible ASCII characters; without it one is generated and printed once',
      }),
    ),
    KAFKA_BROKERS: Type.Optional(
      Type.String({
        pattern: '^[^\\s,:]+:\\d+(,[^\\s,:]+:\\d+)*$',
        description:
          'Brokers to relay events to, `host:port` separated by commas; without it nothing is relayed',
      }),
    ),
    KAFKA_TLS: Type.Boolean({
      default: false,
      description:
        'Speak TLS with the brokers; `NODE_EXTRA_CA_CERTS` names a file with certificates to trust besides the public ones',
    }),
    KAFKA_USERNAME: Type.Optional(
      Type.String({ description: 'Name to authenticate with (SASL); needs KAFKA_PASSWORD' }),
    ),
    KAFKA_PASSWORD: Type.Optional(
      Type.String({ description: 'Its password; needs KAFKA_USERNAME' }),
    ),
    KAFKA_SASL_MECHANISM: Type.Enum(SASL_MECHANISMS, {
      default: 'scram-sha-512',
      description: `One of ${SASL_MECHANISMS.join(', ')}`,
    }),
    KAFKA_AGENTS_TOPIC: Type.String({
      default: 'turnlog.agents.v1',
      pattern: TOPIC,
      description: 'Topic of agent events',
    }),
    KAFKA_SESSIONS_TOPIC: Type.String({
      default: 'turnlog.sessions.v1',
      pattern: TOPIC,
      description: 'Topic of session events',
    }),
    KAFKA_CHECKPOINT_TOPIC: Type.String({
      default: 'turnlog.relay.checkpoint',
      pattern: TOPIC,
      description: 'Compacted topic in which the relay notes how far it is; for one log alone',
    }),
    KAFKA_TRANSACTIONAL_ID: Type.String({
      default: 'turnlog.relay',
      pattern: TOPIC,
      description:
        'Relays of one log share it and take over from each other; relays of different logs must not',
    }),
    KAFKA_PARTITIONS: Type.Integer({
      default: 6,
      minimum: 1,
      maximum: 1_000,
      description: 'Partitions of a topic that the relay has to create',
    }),
    KAFKA_START_AFTER: Type.Optional(
      Type.String({
        pattern: '^[\\w/:.-]{1,100}$',
        description:
          'Position after which the relay begins when it has no checkpoint; without it, at the first event',
      }),
    ),
    KAFKA_TAKEOVER_MS: Type.Integer({
      default: 10_000,
      minimum: 100,
      maximum: 600_000,
      description: 'How long the active relay must be silent before one that stands by takes over',
    }),
    KAFKA_EVENT_SOURCE: Type.String({
      default: '/turnlog',
      minLength: 1,
      maxLength: 256,
      description: 'The `source` of the CloudEvents: a URI reference that names this service',
    }),
    LOG_LEVEL: Type.Enum(LOG_LEVELS, {
      default: 'info',
      description: `One of ${LOG_LEVELS.join(', ')}`,
    }),
    MODEL_ATTEMPT_TIMEOUT_MS: Type.Integer({
      default: 60_000,
      minimum: 1,
      maximum: 3_600_000,
      description: 'Time limit of one attempt of a model call, to the last byte of the answer',
    }),
    MODEL_MAX_RETRIES: Type.Integer({
      default: 2,
      minimum: 0,
      maximum: 10,
      description:
        'Further attempts when the model server answers 429 or 5xx or drops the connection before it answers',
    }),
    RUN_TIMEOUT_MS: Type.Integer({
      default: 120_000,
      minimum: 1,
      maximum: 3_600_000,
      description: 'Time limit of a whole run: model calls, retries and tools',
    }),
    RUN_WAIT_MS: Type.Integer({
      default: 30_000,
      minimum: 0,
      maximum: 3_600_000,
      description:
        'How long a run waits for another run of its session before it answers 409 `session_busy`',
    }),
    VISIBILITY_WAIT_MS: Type.Integer({
      default: 2_000,
      minimum: 0,
      maximum: 60_000,
      description:
        'How long a write waits for the read models to show it before it is answered all the same',
    }),
    SHUTDOWN_GRACE_MS: Type.Integer({
      default: 10_000,
      minimum: 0,
      maximum: 600_000,
      description: 'How long a shut-down lets runs in flight finish',
    }),
  },
  {
    dependentRequired: {
      DATABASE_URL: ['EVENTSTOREDB_URL'],
      KAFKA_USERNAME: ['KAFKA_PASSWORD'],
      KAFKA_PASSWORD: ['KAFKA_USERNAME'],
    },
  },
);
export type Config = Static<typeof ConfigSchema>;

const validate = new Ajv2020({
  allErrors: true,
  coerceTypes: true,
  useDefaults: true,
  strict: false,
}).compile<Config>(ConfigSchema);

/**
 * Reads the options from the environment. Errors: `configuration_invalid` whose message lists every problem, a line each, without
 * any value, because a value may be a secret.
 */
export function parseConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(
    Object.keys(ConfigSchema.properties).flatMap((name) => (env[name] ? [[name, env[name]]] : [])),
  );
  if (validate(given)) return given;
  const details: Record<string, ErrorDetail> = {};
  for (const { instancePath, keyword, message, params } of validate.errors ?? []) {
    if (keyword === 'dependentRequired') {
      const { property, missingProperty } = params as { property: string; missingProperty: string };
      details[missingProperty] = {
        message: `must be set where ${property} is`,
        path: missingProperty,
      };
      continue;
    }
    const name = instancePath.slice(1);
    const allowed = Array.isArray(params['allowedValues'])
      ? `: ${params['allowedValues'].join(', ')}`
      : '';
    details[name] = { message: `${message ?? 'is not valid'}${allowed}`, path: name };
  }
  const lines = Object.entries(details).map(([name, { message }]) => `  ${name} ${message}`);
  throw new TurnlogError(
    'configuration_invalid',
    `The configuration has ${lines.length === 1 ? 'a problem' : `${lines.length} problems`}:\n${lines.join('\n')}`,
    { details },
  );
}
