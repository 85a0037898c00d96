import { destination, pino, type Logger } from 'pino';

export type { Logger };

const SECRETS = ['api_key', 'apiKey', 'authorization', 'secret', 'password', '["x-api-key"]'];

/**
 * The process's logger: JSON lines on standard error, so that standard output stays for people.
 * Written synchronously: lines are few, and the last one before a crash is the one that matters.
 */
export const createLogger = (level: string): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: SECRETS.flatMap((name) => [name, name.startsWith('[') ? `*${name}` : `*.${name}`]),
    },
    destination({ dest: 2, sync: true }),
  );
