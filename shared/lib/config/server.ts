import { Type } from 'typebox';
import { FOLDED_READS } from '../../audit/foldedReadKinds.ts';
import { STRONG_KEY } from '../../accounts/apiKey.ts';

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** Options of the HTTP server and of the process. */
export const serverOptions = {
  HOST: Type.String({
    default: '127.0.0.1',
    pattern: '^[A-Za-z0-9._:%-]+$',
    'x-rule':
      'must be an IP address or a host name of this machine, without http:// and without a port',
    description:
      'Address to listen on: `127.0.0.1` accepts connections from this machine only, `0.0.0.0` from every network (put TLS in front)',
  }),
  PORT: Type.Integer({
    default: 3000,
    minimum: 0,
    maximum: 65535,
    description: 'Port to listen on; 0 takes a free one',
  }),
  METRICS_PORT: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 65535,
      description:
        'Port that serves `/metrics` without a key, and nothing else; without it, `PORT` does for keys with the scope `metrics:read`',
    }),
  ),
  METRICS_HOST: Type.Optional(
    Type.String({ description: 'Address of that port; without it, that of `HOST`' }),
  ),
  BOOTSTRAP_API_KEY: Type.Optional(
    Type.String({
      minLength: STRONG_KEY.length,
      maxLength: 256,
      pattern: '^[!-~]+$',
      'x-strong-key': true,
      description: `Issued to the account \`default\` when no key exists yet, ${STRONG_KEY.length} to 256 visible ASCII characters that are hard to guess (\`openssl rand -hex 32\`); without it one is generated and printed once`,
    }),
  ),
  MAX_CONNECTIONS: Type.Integer({
    default: 10_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'The most connections of clients at a time; one more is closed at once',
  }),
  AUDIT_READS: Type.String({
    default: 'feed,requests',
    pattern: `^(none|(${FOLDED_READS.join('|')})(,(${FOLDED_READS.join('|')}))*)$`,
    description:
      'Reads of texts that are recorded in the audit of the account, once per key, session and hour, separated by commas: `feed`, `requests`, `transcripts`; or `none`',
  }),
  CORS_ORIGINS: Type.Optional(
    Type.String({
      pattern: '^(\\*|[a-z][a-z0-9+.-]*://[^\\s,/]+(,[a-z][a-z0-9+.-]*://[^\\s,/]+)*)$',
      'x-rule':
        'must be * or origins separated by commas, without a path or a slash at the end, such as https://app.example.com,http://localhost:5173',
      description:
        'Origins whose pages may call the API from a browser, separated by commas (`https://app.example.com,http://localhost:5173`), or `*` for all; none when absent',
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
