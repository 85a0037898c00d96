import { destination, pino, type DestinationStream, type Logger } from 'pino';

export type { Logger };

const SECRETS = ['api_key', 'apiKey', 'authorization', 'secret', 'password', '["x-api-key"]'];

/**
 * Creates a logger of JSON lines, by default on standard error, since standard output is for
 * command results. Lines are written synchronously, because the last one before a crash matters
 * most.
 */
export const createLogger = (
  level: string,
  output: DestinationStream = destination({ dest: 2, sync: true }),
): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: SECRETS.flatMap((name) => [name, name.startsWith('[') ? `*${name}` : `*.${name}`]),
    },
    output,
  );
