import { readFileSync } from 'node:fs';
import { ConfigSchema } from '../../shared/lib/config/config.ts';
import { SERVICE_NAMES } from './serviceNames.ts';

/** The options that most installations set, in the order in which they come up. */
const MAIN_OPTIONS = [
  'PORT',
  'HOST',
  'DATA_DIR',
  'BOOTSTRAP_API_KEY',
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
  'MODELS_FILE',
  'EVENTSTOREDB_URL',
  'DATABASE_URL',
  'KAFKA_BROKERS',
] as const satisfies readonly (keyof typeof ConfigSchema.properties)[];

function describeOption(name: (typeof MAIN_OPTIONS)[number]): string {
  const schema: object = ConfigSchema.properties[name];
  const { description, default: preset } = schema as {
    description: string;
    default?: string | number;
  };
  return `  ${name.padEnd(18)} ${description}${preset === undefined ? '' : ` (${preset})`}`;
}

/** The version in package.json. */
export function packageVersion(): string {
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

const help = (): string =>
  [
    'npm start [-- --services <names>]',
    '',
    `Starts Turnlog. Without --services it starts all that is configured of ${SERVICE_NAMES.join(', ')} (separated by commas).`,
    '',
    'Options are environment variables (defaults in parentheses):',
    ...MAIN_OPTIONS.map(describeOption),
    '',
    'All options: docs/configuration.md. First steps: README.md. Operator commands: npm run cli -- --help',
    '',
  ].join('\n');

/** The text to print instead of starting, if the arguments ask for help or for the version. */
export function answerWithoutStart(args: readonly string[]): string | undefined {
  if (args.includes('--help') || args.includes('-h')) return help();
  return args.includes('--version') ? `${packageVersion()}\n` : undefined;
}
