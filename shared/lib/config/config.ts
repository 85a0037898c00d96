import { Type, type Static, type TObject } from 'typebox';
import { clientOptions } from './client.ts';
import { kafkaOptions } from './kafka.ts';
import { misspeltIn, type Misspelt } from './misspelledOptions.ts';
import { modelOptions } from './models.ts';
import { plaintextPasswords } from './plaintext.ts';
import { runOptions } from './runs.ts';
import { serverOptions } from './server.ts';
import { storageOptions } from './storage.ts';
import { storeOptions } from './stores.ts';
import { toolOptions } from './tools.ts';
import { transparencyOptions } from './transparency.ts';
import { TurnlogError, type ErrorDetail } from '../errors/turnlogError.ts';
import { webhookOptions } from './webhooks.ts';
import {
  fromText,
  lazyValidator,
  problemsOf,
  type ProblemMessages,
} from '../validation/validation.ts';

/** All options, one environment variable each. Empty variables count as absent. */
export const ConfigSchema = Type.Object(
  {
    ...serverOptions,
    ...storeOptions,
    ...storageOptions,
    ...transparencyOptions,
    ...modelOptions,
    ...toolOptions,
    ...runOptions,
    ...webhookOptions,
    ...kafkaOptions,
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

/** Options of commands that are clients of a running service. No other command reads them. */
export const ClientConfigSchema = Type.Object(clientOptions);

/** An example value for an option that has one. */
function exampleOf(schema: unknown, name: string): string {
  const { examples } = (schema as TObject).properties[name] as { examples?: string[] };
  return examples ? `, for example to ${examples[0]}` : '';
}

const WORDS: ProblemMessages = {
  dependentRequired: ({ property }) => `must be set where ${property as string} is`,
  required: ({ missingProperty }, schema) =>
    `must be set${exampleOf(schema, missingProperty as string)}`,
  enum: ({ allowedValues }) =>
    `must be equal to one of the allowed values: ${(allowedValues as string[]).join(', ')}`,
};

/** Variables by name, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Finds variables that resemble an option but are none. */
export const misspeltOptions = (env: Environment): Misspelt[] =>
  misspeltIn(env, Object.keys(ConfigSchema.properties));

/** Finds problems beyond the schema: the second half of a sentence for each option. */
type FurtherProblems = (given: Record<string, unknown>) => Record<string, string>;

function parserOf<Schema extends TObject>(
  schema: Schema,
  furtherProblems: FurtherProblems = () => ({}),
): (env: Environment) => Static<Schema> {
  const validator = lazyValidator(schema, 'with_defaults');
  return (env) => {
    const texts = Object.fromEntries(
      Object.keys(schema.properties).flatMap((name) => (env[name] ? [[name, env[name]]] : [])),
    );
    const options = fromText(schema, texts);
    const validate = validator();
    const valid = validate(options);
    const details: Record<string, ErrorDetail> = {};
    const add = (name: string, message: string): void =>
      void (details[name] = { message, path: name });
    for (const [name, message] of Object.entries(furtherProblems(options))) add(name, message);
    for (const { path, message } of problemsOf(validate.errors, WORDS)) add(path.slice(1), message);
    if (valid && Object.keys(details).length === 0) return options;
    const lines = Object.entries(details).map(([name, { message }]) => `  ${name} ${message}`);
    const count = lines.length === 1 ? 'a problem' : `${lines.length} problems`;
    throw new TurnlogError(
      'configuration_invalid',
      `The configuration has ${count}:\n${lines.join('\n')}`,
      { details },
    );
  };
}

/**
 * Reads the options from the environment. Throws `configuration_invalid`, whose message lists each
 * problem on one line, without values, because they may be secrets.
 */
export const parseConfig = parserOf(ConfigSchema, plaintextPasswords);

/** Reads the options of a client from the environment. Throws the errors of parseConfig. */
export const parseClientConfig = parserOf(ClientConfigSchema);
