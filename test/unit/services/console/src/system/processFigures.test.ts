import { expect, test } from '@jest/globals';
import { parseMetrics } from '../../../../../../services/console/src/system/openMetrics.ts';
import { processFigures } from '../../../../../../services/console/src/system/processFigures.ts';

const read = (at: number, cpu: number, counts: readonly number[]) => ({
  at,
  metrics: parseMetrics(
    [
      `process_cpu_seconds_total ${cpu}`,
      'process_resident_memory_bytes 1000',
      'nodejs_heap_size_used_bytes 400',
      'nodejs_heap_size_limit_bytes 800',
      'process_start_time_seconds 1700000000.5',
      ...['0.01', '0.05', '0.5', '+Inf'].map(
        (bound, at_) => `turnlog_event_loop_delay_seconds_bucket{le="${bound}"} ${counts[at_]}`,
      ),
    ].join('\n'),
  ),
});

test('rates are of the time between two reads', () => {
  const figures = processFigures(
    read(4_000, 3, [190, 199, 200, 200]),
    read(2_000, 2, [100, 100, 100, 100]),
  );
  expect(figures).toEqual({
    delayMs: 50,
    cores: 0.5,
    residentBytes: 1_000,
    heapBytes: 400,
    heapLimitBytes: 800,
    startedAt: '2023-11-14T22:13:20.500Z',
  });
});

test('without a read before, CPU and delay are unknown', () => {
  const figures = processFigures(read(4_000, 3, [0, 0, 1, 1]), undefined);
  expect(figures).toMatchObject({ delayMs: undefined, cores: undefined, heapBytes: 400 });
});

test('counters of a process that was started again are not negative', () => {
  const figures = processFigures(
    read(4_000, 1, [10, 10, 10, 10]),
    read(2_000, 9, [100, 100, 100, 100]),
  );
  expect(figures).toMatchObject({ cores: 0.5, delayMs: 10 });
});

test('a delay beyond the last bound is infinite, and unknown when no timer ran', () => {
  const before = read(2_000, 2, [100, 100, 100, 100]);
  expect(processFigures(read(4_000, 3, [100, 100, 100, 101]), before).delayMs).toBe(Infinity);
  expect(processFigures(read(4_000, 3, [100, 100, 100, 100]), before).delayMs).toBeUndefined();
  expect(processFigures({ at: 1, metrics: new Map() }, undefined)).toMatchObject({
    delayMs: undefined,
  });
});
