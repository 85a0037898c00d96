import { Type } from 'typebox';

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** The HTTP server, and the process as a whole. */
export const serverOptions = {
  HOST: Type.String({ default: '127.0.0.1', description: 'Address to listen on' }),
  PORT: Type.Integer({
    default: 3000,
    minimum: 0,
    maximum: 65535,
    description: 'Port to listen on; 0 takes a free one',
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
  LOG_LEVEL: Type.Enum(LOG_LEVELS, {
    default: 'info',
    description: `One of ${LOG_LEVELS.join(', ')}`,
  }),
  ALLOW_PLAINTEXT_PASSWORDS: Type.Boolean({
    default: false,
    description:
      'Let passwords of Kafka, EventStoreDB and PostgreSQL go to other hosts without TLS: for a network that is trusted',
  }),
  DRAIN_MS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 600_000,
    description:
      'How long a process that serves the API goes on serving after SIGTERM while `/health/ready` is 503, so that a load balancer can turn away from it',
  }),
  SHUTDOWN_GRACE_MS: Type.Integer({
    default: 10_000,
    minimum: 0,
    maximum: 600_000,
    description: 'How long a shut-down lets runs in flight finish',
  }),
};
