import { Type } from '../../domain/jsonSchema.ts';
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
      'Address to listen on: `127.0.0.1` for this machine only, `0.0.0.0` for every network (put TLS in front)',
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
      description: 'Port that serves only `/metrics`, without a key',
    }),
  ),
  METRICS_HOST: Type.Optional(Type.String({ description: 'Address of that port; default `HOST`' })),
  BOOTSTRAP_API_KEY: Type.Optional(
    Type.String({
      minLength: STRONG_KEY.length,
      maxLength: 256,
      pattern: '^[!-~]+$',
      'x-rule': 'must be visible ASCII characters',
      'x-strong-key': true,
      description: `First API key, of the account \`default\`: ${STRONG_KEY.length} to 256 random visible ASCII characters; by default generated and printed once`,
    }),
  ),
  MAX_CONNECTIONS: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description: 'Client connections; default 10000, fewer with little heap',
    }),
  ),
  AUDIT_READS: Type.String({
    default: 'feed,requests',
    pattern: `^(none|(${FOLDED_READS.join('|')})(,(${FOLDED_READS.join('|')}))*)$`,
    'x-rule': `must be none, or some of ${FOLDED_READS.join(', ')}, separated by commas without spaces`,
    description:
      'Reads to audit, once per key, session and hour: `feed`, `requests`, `transcripts`, separated by commas; or `none`',
  }),
  CORS_ORIGINS: Type.Optional(
    Type.String({
      pattern: '^(\\*|[a-z][a-z0-9+.-]*://[^\\s,/]+(,[a-z][a-z0-9+.-]*://[^\\s,/]+)*)$',
      'x-rule':
        'must be * or origins separated by commas, without a path or a slash at the end, such as https://app.example.com,http://localhost:5173',
      description:
        'Origins whose pages may call the API, separated by commas (`https://app.example.com`), or `*`',
    }),
  ),
  CONSOLE: Type.Enum(['on', 'off'], {
    default: 'on',
    description: 'Serve the console at `/console`: `on` or `off`',
  }),
  LOG_LEVEL: Type.Enum(LOG_LEVELS, {
    default: 'info',
    description: `One of ${LOG_LEVELS.join(', ')}`,
  }),
  ALLOW_PLAINTEXT_PASSWORDS: Type.Boolean({
    default: false,
    description: 'Allow passwords without TLS to other hosts, in a trusted network',
  }),
  DRAIN_MS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 600_000,
    description: 'How long an API process keeps serving after SIGTERM with `/health/ready` 503',
  }),
  SHUTDOWN_GRACE_MS: Type.Integer({
    default: 10_000,
    minimum: 0,
    maximum: 600_000,
    description: 'How long a shutdown waits for runs in flight',
  }),
};
