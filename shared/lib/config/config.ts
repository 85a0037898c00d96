import type { Static, TObject, TSchema } from 'typebox';
import { Type } from '../../domain/jsonSchema.ts';
import { clientOptions } from './client.ts';
import { kafkaOptions } from './kafka.ts';
import { misspeltIn, type Misspelt } from '../typos.ts';
import { modelOptions } from './models.ts';
import { plaintextPasswords } from './plaintext.ts';
import { runOptions } from './runs.ts';
import { serverOptions } from './server.ts';
import { storageOptions } from './storage.ts';
import { storeOptions } from './stores.ts';
import { toolOptions } from './tools.ts';
import { transparencyOptions } from './transparency.ts';
import { TurnlogError } from '../errors/turnlogError.ts';
import { webhookOptions } from './webhooks.ts';
import {
  convertText,
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

/** Rules of keywords in words. That of a pattern is the `x-rule` of its option. */
const WORDS: ProblemMessages = {
  type: ({ type }) => (type === 'boolean' ? 'must be true or false' : 'must be a whole number'),
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

interface OptionsSchema {
  properties: Readonly<Record<string, TSchema>>;
  required?: readonly string[];
  /** The options that must be set where the option of that name is. */
  dependentRequired?: Readonly<Record<string, readonly string[]>>;
}

/** The options that are not set, and have to be. */
function missingOptions(
  { properties, required = [], dependentRequired = {} }: OptionsSchema,
  options: Readonly<Record<string, unknown>>,
): [name: string, problem: string][] {
  const isMissing = (name: string): boolean => options[name] === undefined;
  const never = required.filter(isMissing).map((name): [string, string] => {
    const { examples } = properties[name] as { examples?: string[] };
    return [name, `must be set${examples ? `, for example to ${examples[0]}` : ''}`];
  });
  const beside = Object.entries(dependentRequired).flatMap(([option, names]) =>
    isMissing(option)
      ? []
      : names
          .filter(isMissing)
          .map((name): [string, string] => [name, `must be set where ${option} is`]),
  );
  return [...never, ...beside];
}

/**
 * Validates each option by itself, and only those that are given: compiling a validator of them all
 * would be a tenth of the time of a start.
 */
function parserOf<Schema extends TObject>(
  schema: Schema,
  furtherProblems: FurtherProblems = () => ({}),
): (env: Environment) => Static<Schema> {
  const names = Object.keys(schema.properties);
  const validators = new Map(names.map((name) => [name, lazyValidator(schema.properties[name]!)]));
  const defaults = Object.fromEntries(
    Object.entries(schema.properties).flatMap(([name, option]) =>
      'default' in option ? [[name, option.default]] : [],
    ),
  );

  function valueProblems(name: string, value: unknown): [string, string][] {
    const validate = validators.get(name)!();
    if (validate(value)) return [];
    return problemsOf(validate.errors, WORDS).map(({ message }) => [name, message]);
  }

  return (env) => {
    const texts = Object.fromEntries(
      names.flatMap((name) => (env[name] ? [[name, env[name]]] : [])),
    );
    const converted = convertText(schema, texts);
    const options = { ...defaults, ...converted };
    const problems = new Map([
      ...Object.entries(furtherProblems(options)),
      ...missingOptions(schema as unknown as OptionsSchema, options),
      ...Object.entries(converted).flatMap(([name, value]) => valueProblems(name, value)),
    ]);
    if (problems.size === 0) return options as Static<Schema>;
    const lines = [...problems].map(([name, message]) => `  ${name} ${message}`);
    const count = lines.length === 1 ? 'a problem' : `${lines.length} problems`;
    throw new TurnlogError(
      'configuration_invalid',
      `The configuration has ${count}:\n${lines.join('\n')}`,
      {
        details: Object.fromEntries(
          [...problems].map(([name, message]) => [name, { message, path: name }]),
        ),
      },
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
