import { expect, test } from '@jest/globals';
import { parseConfig } from '../../../../../shared/lib/config/config.ts';
import { databaseInTheClear } from '../../../../../shared/lib/config/plaintext.ts';

const user = { KAFKA_USERNAME: 'relay', KAFKA_PASSWORD: 'hidden' };
const kafka = { KAFKA_BROKERS: 'localhost:9092,broker.example:9092', ...user };
const cluster = { EVENTSTOREDB_URL: 'esdb://admin:hidden@10.0.0.7:2113?tls=false' };

test.each([
  ['Kafka', kafka, 'KAFKA_TLS must be true'],
  ['Kafka, plain', { ...kafka, KAFKA_SASL_MECHANISM: 'plain' }, 'KAFKA_TLS must be true'],
  ['EventStoreDB', cluster, 'EVENTSTOREDB_URL must not name a password with tls=false'],
])(
  'a password that goes to another host in the clear is refused unless that is meant: %s',
  (_where, env, problem) => {
    expect(() => parseConfig(env)).toThrow(problem);
    expect(() => parseConfig({ ...env, PORT: 'x' })).toThrow(/2 problems/);
    expect(() => parseConfig(env)).not.toThrow(/hidden/);
    expect(parseConfig({ ...env, ALLOW_PLAINTEXT_PASSWORDS: 'true' })).toMatchObject(env);
  },
);

test.each([
  ['the brokers are on this machine', { ...kafka, KAFKA_BROKERS: 'localhost:1,127.0.0.1:2' }],
  ['Kafka is spoken to over TLS', { ...kafka, KAFKA_TLS: 'true' }],
  ['Kafka asks for no user', { KAFKA_BROKERS: 'broker.example:9092' }],
  ['the cluster is on this machine', { EVENTSTOREDB_URL: 'esdb://a:b@127.0.0.1:2113?tls=false' }],
  ['the cluster has TLS', { EVENTSTOREDB_URL: 'esdb://a:b@10.0.0.7:2113' }],
  ['the cluster asks for no user', { EVENTSTOREDB_URL: 'esdb://10.0.0.7:2113?tls=false' }],
])('nothing is refused where %s', (_where, env) => {
  expect(parseConfig(env)).toBeDefined();
});

const inTheClear = (url: string, more: Record<string, string> = {}): string | undefined =>
  databaseInTheClear(
    parseConfig({ EVENTSTOREDB_URL: 'esdb://127.0.0.1', DATABASE_URL: url, ...more }),
  );

test.each(['postgres://a:hidden@db/turnlog', 'postgres://a:hidden@db:5432/t?sslmode=disable'])(
  'a database on another host without TLS is warned of, and no more: %s',
  (url) => {
    expect(inTheClear(url)).toMatch(/^DATABASE_URL leads to another host without TLS/);
    expect(inTheClear(url)).not.toContain('hidden');
    expect(inTheClear(url, { ALLOW_PLAINTEXT_PASSWORDS: 'true' })).toBeUndefined();
  },
);

test.each([
  'postgres://a:b@db/turnlog?sslmode=verify-full',
  'postgres://a:b@127.0.0.1:5432/turnlog',
  'postgres://a:b@[::1]:5432/turnlog',
  'postgres://a@db/turnlog',
])('nothing is said of %s', (url) => {
  expect(inTheClear(url)).toBeUndefined();
});
