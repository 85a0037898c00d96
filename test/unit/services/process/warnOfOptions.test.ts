import { getHeapStatistics } from 'node:v8';
import { expect, test } from '@jest/globals';
import { parseConfig } from '../../../../shared/lib/config/config.ts';
import { warnOfOptions } from '../../../../services/process/warnOfOptions.ts';

const HEAP = getHeapStatistics().heap_size_limit;

function warningsOf(env: Record<string, string>): unknown[][] {
  const warned: unknown[][] = [];
  warnOfOptions(parseConfig(env), env, {
    warn: (...given: unknown[]) => void warned.push(given),
  });
  return warned;
}

test.each([
  ['more than a quarter of the heap', Math.ceil(HEAP / 4) + 1, 1],
  ['a quarter of the heap', Math.floor(HEAP / 4), 0],
  ['not set', undefined, 0],
])('warns of MAX_PROMPT_BYTES that is %s', (_what, bytes, times) => {
  const env = bytes === undefined ? {} : { MAX_PROMPT_BYTES: String(bytes) };
  expect(warningsOf(env)).toEqual(
    Array.from({ length: times }, () => [
      { MAX_PROMPT_BYTES: bytes, heap_bytes: HEAP },
      expect.stringContaining('more than a quarter of the heap'),
    ]),
  );
});

const replica = { EVENTSTOREDB_URL: 'esdb://127.0.0.1', DATABASE_URL: 'postgres://127.0.0.1/t' };
const kafka = { KAFKA_TLS: 'true', KAFKA_AGENTS_TOPIC: 'agents', KAFKA_EVENT_SOURCE: '/x' };

test.each([
  [{ METRICS_HOST: '::1' }, ['METRICS_HOST is ignored without METRICS_PORT']],
  [{ METRICS_HOST: '::1', METRICS_PORT: '0' }, []],
  [
    kafka,
    [
      'KAFKA_TLS is ignored without KAFKA_BROKERS',
      'KAFKA_AGENTS_TOPIC is ignored without KAFKA_BROKERS',
    ],
  ],
  [{ ...kafka, KAFKA_BROKERS: '127.0.0.1:9092' }, []],
  [{ KEYS_DIR: '/keys' }, []],
  [{ KEYS_DIR: '/keys', ...replica }, ['KEYS_DIR is ignored with DATABASE_URL']],
  [{ KAFKA_HOME: '/opt/kafka' }, []],
])('warns of options without effect: %j', (env, expected) => {
  expect(warningsOf(env).map(([, message]) => message)).toEqual(expected);
});
