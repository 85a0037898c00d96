import { getHeapStatistics } from 'node:v8';
import { expect, test } from '@jest/globals';
import { parseConfig } from '../../../../shared/lib/config/config.ts';
import { warnOfOptions } from '../../../../services/process/warnOfOptions.ts';

const HEAP = getHeapStatistics().heap_size_limit;

test.each([
  ['more than a quarter of the heap', Math.ceil(HEAP / 4) + 1, 1],
  ['a quarter of the heap', Math.floor(HEAP / 4), 0],
  ['not set', undefined, 0],
])('warns of MAX_PROMPT_BYTES that is %s', (_what, bytes, times) => {
  const env = bytes === undefined ? {} : { MAX_PROMPT_BYTES: String(bytes) };
  const warned: unknown[] = [];
  warnOfOptions(parseConfig(env), env, {
    warn: (...given: unknown[]) => void warned.push(given),
  });
  expect(warned).toEqual(
    Array.from({ length: times }, () => [
      { MAX_PROMPT_BYTES: bytes, heap_bytes: HEAP },
      expect.stringContaining('more than a quarter of the heap'),
    ]),
  );
});
