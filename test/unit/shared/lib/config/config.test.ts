import { describe, expect, jest, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  ClientConfigSchema,
  ConfigSchema,
  parseConfig,
} from '../../../../../shared/lib/config/config.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';

function problemsOf(env: Record<string, string>): TurnlogError {
  try {
    parseConfig(env);
  } catch (error) {
    if (error instanceof TurnlogError) return error;
    throw error;
  }
  throw new Error('the configuration was accepted');
}

describe('the configuration', () => {
  test('compiles no schema but those of the options that are set', () => {
    const compile = jest.spyOn(Ajv2020.prototype, 'compile');
    parseConfig({});
    expect(compile).not.toHaveBeenCalled();
    parseConfig({ PORT: '1' });
    expect(compile).toHaveBeenCalledTimes(1);
    compile.mockRestore();
  });

  test('accepts every default when it is set', () => {
    const defaults = parseConfig({});
    const texts = Object.entries(defaults).map(([name, value]) => [name, String(value)]);
    expect(parseConfig(Object.fromEntries(texts) as Record<string, string>)).toEqual(defaults);
  });

  test('of an empty environment is the embedded service on loopback, with nothing of the outside world in it', () => {
    const config = parseConfig({});
    expect(config).toMatchObject({
      HOST: '127.0.0.1',
      PORT: 3000,
      DATA_DIR: './data',
      COMPONENTS: 'Chat',
      LOG_LEVEL: 'info',
      MODEL_ATTEMPT_TIMEOUT_MS: 60_000,
      MODEL_MAX_RETRIES: 2,
      RUN_TIMEOUT_MS: 120_000,
      RUN_WAIT_MS: 30_000,
      VISIBILITY_WAIT_MS: 2_000,
      SHUTDOWN_GRACE_MS: 10_000,
    });
    for (const name of [
      'EVENTSTOREDB_URL',
      'KAFKA_BROKERS',
      'OPENAI_API_KEY',
      'OPENAI_BASE_URL',
      'MASTER_KEY_FILE',
      'MODELS_FILE',
      'BOOTSTRAP_API_KEY',
      'CORS_ORIGINS',
    ])
      expect(config).not.toHaveProperty(name);
  });

  test('of read models in PostgreSQL needs a log that other processes can reach', () => {
    const { message, details } = problemsOf({ DATABASE_URL: 'postgres://127.0.0.1/turnlog' });
    expect(message).toContain('EVENTSTOREDB_URL must be set where DATABASE_URL is');
    expect(Object.keys(details ?? {})).toEqual(['EVENTSTOREDB_URL']);
    expect(
      parseConfig({
        DATABASE_URL: 'postgres://127.0.0.1/turnlog',
        EVENTSTOREDB_URL: 'esdb://127.0.0.1:2113',
      }),
    ).toHaveProperty('DATABASE_URL');
  });

  test('of a user of Kafka has a name and a password', () => {
    expect(problemsOf({ KAFKA_USERNAME: 'relay' }).message).toContain(
      'KAFKA_PASSWORD must be set where KAFKA_USERNAME is',
    );
    expect(problemsOf({ KAFKA_PASSWORD: 'secret' }).message).toContain(
      'KAFKA_USERNAME must be set where KAFKA_PASSWORD is',
    );
    expect(
      parseConfig({ KAFKA_TLS: 'true', KAFKA_USERNAME: 'relay', KAFKA_PASSWORD: 'secret' }),
    ).toMatchObject({ KAFKA_TLS: true, KAFKA_SASL_MECHANISM: 'scram-sha-512' });
  });

  test('takes numbers as numbers, an empty variable as absent, and leaves other variables alone', () => {
    const env = { PORT: '0', RUN_WAIT_MS: '5', HOST: '', MODELS_FILE: '', PATH: '/bin', port: '1' };
    const config = parseConfig(env);
    expect(config).toMatchObject({ PORT: 0, RUN_WAIT_MS: 5, HOST: '127.0.0.1' });
    expect(config).not.toHaveProperty('MODELS_FILE');
    expect(config).not.toHaveProperty('PATH');
    expect(env.PORT).toBe('0');
  });

  test('that has problems is refused with all of them, a line each, and without any value', () => {
    const env = {
      PORT: '70000',
      LOG_LEVEL: 'secret-level',
      RUN_TIMEOUT_MS: 'secret-time',
      COMPONENTS: 'a, secret',
      BOOTSTRAP_API_KEY: 'secret key',
    };
    const { code, message, details } = problemsOf(env);
    expect(code).toBe('configuration_invalid');
    const lines = message.split('\n').slice(1);
    expect(lines.length).toBe(Object.keys(env).length);
    for (const name of Object.keys(env))
      expect(lines.filter((line) => line.startsWith(`  ${name} must`)).length).toBe(1);
    expect(Object.keys(details!).toSorted()).toEqual(Object.keys(env).toSorted());
    expect(message).toContain(
      'LOG_LEVEL must be equal to one of the allowed values: fatal, error, warn, info, debug, trace, silent',
    );
    expect(message).toContain('PORT must be <= 65535');
    expect(message).not.toMatch(/secret|70000/);
  });

  test.each([
    ['KAFKA_TLS', '1', 'must be true or false'],
    ['PORT', '3000x', 'must be a whole number'],
    ['KAFKA_BROKERS', 'kafka', 'must be host:port, several separated by commas'],
    ['KAFKA_AGENTS_TOPIC', 'a b', 'must be 1 to 230 letters, digits, dots, underscores or hyphens'],
    ['DATABASE_URL', 'mysql://x', 'must begin with postgres:// or postgresql://'],
  ])('says what is allowed: %s=%s', (name, value, rule) => {
    const env = { EVENTSTOREDB_URL: 'esdb://127.0.0.1:2113', [name]: value };
    expect(problemsOf(env).message).toBe(`The configuration has a problem:\n  ${name} ${rule}`);
  });

  test('has a rule in words for every pattern', () => {
    const options = { ...ConfigSchema.properties, ...ClientConfigSchema.properties };
    const wordless = Object.entries(options).filter(
      ([, option]) => 'pattern' in option && !('x-rule' in option),
    );
    expect(wordless).toEqual([]);
  });

  test.each([
    ['PORT', '-1'],
    ['PORT', '65536'],
    ['PORT', '1.5'],
    ['PORT', 'http'],
    ['PORT', '0x10'],
    ['PORT', '1e3'],
    ['PORT', '+80'],
    ['PORT', ' 80'],
    ['MODEL_MAX_RETRIES', '11'],
    ['MODEL_ATTEMPT_TIMEOUT_MS', '0'],
    ['COMPONENTS', 'Chat,'],
    ['COMPONENTS', 'Chat Form'],
    ['OPENAI_BASE_URL', 'localhost:8080'],
    ['OPENAI_BASE_URL', 'https://me:pw@models.example/v1'],
    ['OPENAI_BASE_URL', 'http://['],
    ['OPENAI_BASE_URL', 'http://127.0.0.1:99999/v1'],
    ['OPENAI_API_KEY', 'ключ'],
    ['OPENAI_API_KEY', ' '],
    ['KAFKA_EVENT_SOURCE', '/my service'],
    ['KAFKA_EVENT_SOURCE', '/service\u0001'],
    ['BOOTSTRAP_API_KEY', 'nXlU8vO2hW7kQe4b'],
    ['BOOTSTRAP_API_KEY', 'a'.repeat(64)],
    ['BOOTSTRAP_API_KEY', 'abc'.repeat(30)],
    ['BOOTSTRAP_API_KEY', 'password'.repeat(8)],
    ['BOOTSTRAP_API_KEY', '0123456789abcdefghijklmnopqrstuvwxyz'],
    ['BOOTSTRAP_API_KEY', 'x'.repeat(257)],
    ['MAX_CONNECTIONS', '0'],
    ['CORS_ORIGINS', 'app.example.com'],
    ['CORS_ORIGINS', 'https://app.example.com/'],
    ['CORS_ORIGINS', 'https://a.example, https://b.example'],
    ['BOOTSTRAP_API_KEY', 'with a space in the key'],
    ['BOOTSTRAP_API_KEY', 'schlüssel-schlüssel'],
    ['LOG_LEVEL', 'INFO'],
  ])('is refused with %s %j', (name, value) => {
    const { message } = problemsOf({ [name]: value });
    expect(message).toMatch(new RegExp(`^The configuration has a problem:\n  ${name} must`));
  });
});
