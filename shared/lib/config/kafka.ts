import { Type } from 'typebox';

const SASL_MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const;

const TOPIC = '^[\\w.-]{1,230}$';

/** Options of the relay to Kafka. */
export const kafkaOptions = {
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
  KAFKA_PASSWORD: Type.Optional(Type.String({ description: 'Its password; needs KAFKA_USERNAME' })),
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
  KAFKA_DEAD_LETTER_TOPIC: Type.String({
    default: 'turnlog.dead-letter',
    pattern: TOPIC,
    description: 'Topic that names the events of keys that are parked',
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
  KAFKA_RETENTION: Type.String({
    default: 'forever',
    pattern: '^(forever|[1-9]\\d{0,5}[hd])$',
    description:
      'How long the public topics keep events: `forever`, or hours or days (`90d`); set on topics that the relay creates, and looked at where they exist',
  }),
  KAFKA_START_AFTER: Type.Optional(
    Type.String({
      pattern: '^[\\w/:.-]{1,100}$',
      description:
        'Position after which the relay begins when it has no checkpoint, or `beginning`; without it, at the first event, unless the topics hold messages already',
    }),
  ),
  KAFKA_TAKEOVER_MS: Type.Integer({
    default: 7_000,
    minimum: 100,
    maximum: 600_000,
    description:
      'How long the active relay must not have got on before one that stands by takes over',
  }),
  KAFKA_EVENT_SOURCE: Type.String({
    default: '/turnlog',
    minLength: 1,
    maxLength: 256,
    description: 'The `source` of the CloudEvents: a URI reference that names this service',
  }),
};
