import { destination, pino, type DestinationStream, type Logger } from 'pino';
import { formatLogLine } from './terminal.ts';
import { MIB } from './units.ts';

export type { Logger };

const SECRETS = [
  'api_key',
  'apiKey',
  'authorization',
  'secret',
  'password',
  'token',
  '["x-api-key"]',
];

/**
 * The standard error of a process, written synchronously: the last line before a crash matters most.
 * On a full disk lines wait, up to 1 MiB, and are written once there is space; more, and lines of over
 * 1 MiB, are dropped.
 */
function createErrorOutput(): LogOutput {
  const output = destination({ dest: 2, sync: true, maxLength: MIB });
  // Without a listener, the failure to log would end the process.
  output.on('error', () => undefined);
  // pino flushes after a fatal line, and on a full disk the flush would repeat without end.
  output.flushSync = () => undefined;
  return Object.assign(output, { isTTY: process.stderr.isTTY });
}

type LogOutput = DestinationStream & { isTTY?: boolean };

/** Formats the lines for people where they go to a terminal. */
const forReaders = (output: LogOutput): DestinationStream =>
  output.isTTY ? { write: (line) => output.write(formatLogLine(line)) } : output;

/**
 * Creates a logger of JSON lines, or of plain text on a terminal. By default it writes to standard
 * error, since standard output is for command results.
 */
export const createLogger = (level: string, output: LogOutput = createErrorOutput()): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: SECRETS.flatMap((name) => [name, name.startsWith('[') ? `*${name}` : `*.${name}`]),
    },
    forReaders(output),
  );
