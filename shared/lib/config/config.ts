import { Type, type Static, type TObject } from 'typebox';
import { clientOptions } from './client.ts';
import { kafkaOptions } from './kafka.ts';
import { misspeltIn, type Misspelt } from './misspelledOptions.ts';
import { modelOptions } from './models.ts';
import { plaintextPasswords } from './plaintext.ts';
import { runOptions } from './runs.ts';
import { serverOptions } from './server.ts';
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

/** Every option: one environment variable each. An empty variable counts as absent. */
export const ConfigSchema = Type.Object(
  {
    ...serverOptions,
    ...storeOptions,
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

/** Options of the commands that are clients of a running service: no other one reads them. */
export const ClientConfigSchema = Type.Object(clientOptions);

const WORDS: ProblemMessages = {
  dependentRequired: ({ property }) => `must be set where ${property as string} is`,
  required: () => 'must be set',
  enum: ({ allowedValues }) =>
    `must be equal to one of the allowed values: ${(allowedValues as string[]).join(', ')}`,
};

/** Variables by their names, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that look like an option of ours, and are none. */
export const misspeltOptions = (env: Environment): Misspelt[] =>
  misspeltIn(env, Object.keys(ConfigSchema.properties));

/** What is wrong with options that their schema does not know; a sentence's rest for each. */
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
    const given = fromText(schema, texts);
    const validate = validator();
    const valid = validate(given);
    const details: Record<string, ErrorDetail> = {};
    const add = (name: string, message: string): void =>
      void (details[name] = { message, path: name });
    for (const [name, message] of Object.entries(furtherProblems(given))) add(name, message);
    for (const { path, message } of problemsOf(validate.errors, WORDS)) add(path.slice(1), message);
    if (valid && Object.keys(details).length === 0) return given;
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
 * Reads the options from the environment. Errors: `configuration_invalid` whose message lists every
 * problem, a line each, without any value, because a value may be a secret.
 */
export const parseConfig = parserOf(ConfigSchema, plaintextPasswords);

/** Reads the options of a client from the environment. Errors: those of parseConfig. */
export const parseClientConfig = parserOf(ClientConfigSchema);
