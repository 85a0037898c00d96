import { Type } from '../../domain/jsonSchema.ts';

const SASL_MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const;

const TOPIC = {
  pattern: '^[\\w.-]{1,230}$',
  'x-rule': 'must be 1 to 230 letters, digits, dots, underscores or hyphens',
};

/** Options of the relay to Kafka. */
export const kafkaOptions = {
  KAFKA_BROKERS: Type.Optional(
    Type.String({
      pattern: '^[^\\s,:]+:\\d+(,[^\\s,:]+:\\d+)*$',
      'x-rule': 'must be host:port, several separated by commas',
      description: 'Brokers to relay events to, `host:port` separated by commas',
    }),
  ),
  KAFKA_TLS: Type.Boolean({
    default: false,
    description: 'TLS to the brokers; `NODE_EXTRA_CA_CERTS` names further trusted certificates',
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
    ...TOPIC,
    description: 'Topic of agent events',
  }),
  KAFKA_SESSIONS_TOPIC: Type.String({
    default: 'turnlog.sessions.v1',
    ...TOPIC,
    description: 'Topic of session events',
  }),
  KAFKA_DEAD_LETTER_TOPIC: Type.String({
    default: 'turnlog.dead-letter',
    ...TOPIC,
    description: 'Topic for the events of parked keys',
  }),
  KAFKA_CHECKPOINT_TOPIC: Type.String({
    default: 'turnlog.relay.checkpoint',
    ...TOPIC,
    description: 'Compacted topic with the relay’s progress, for one log only',
  }),
  KAFKA_TRANSACTIONAL_ID: Type.String({
    default: 'turnlog.relay',
    ...TOPIC,
    description: 'Transactional id, shared by the relays of one log only',
  }),
  KAFKA_PARTITIONS: Type.Integer({
    default: 6,
    minimum: 1,
    maximum: 1_000,
    description: 'Partitions of topics that the relay creates',
  }),
  KAFKA_RETENTION: Type.String({
    default: 'forever',
    pattern: '^(forever|[1-9]\\d{0,5}[hd])$',
    'x-rule': 'must be forever, or hours or days such as 12h or 90d',
    description:
      'Retention of public topics that the relay creates: `forever`, hours or days (`90d`)',
  }),
  KAFKA_START_AFTER: Type.Optional(
    Type.String({
      pattern: '^[\\w/:.-]{1,100}$',
      'x-rule': 'must be a position of the log, or beginning',
      description:
        'Position after which a relay without a checkpoint begins, or `beginning`; default the first event, if the topics are empty',
    }),
  ),
  KAFKA_TAKEOVER_MS: Type.Integer({
    default: 7_000,
    minimum: 100,
    maximum: 600_000,
    description: 'Time without progress of the active relay after which a standby takes over',
  }),
  KAFKA_EVENT_SOURCE: Type.String({
    default: '/turnlog',
    maxLength: 256,
    pattern: '^[!-~]+$',
    'x-rule': 'must be a URI reference: visible ASCII characters',
    description: 'The `source` of the CloudEvents: a URI reference that names this service',
  }),
};
