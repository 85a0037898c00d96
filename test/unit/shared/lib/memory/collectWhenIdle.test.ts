import { expect, jest, test, afterEach, beforeEach } from '@jest/globals';
import { collectWhenIdle } from '../../../../../shared/lib/memory/collectWhenIdle.ts';
import { MIB } from '../../../../../shared/lib/units.ts';

/** How busy the event loop was between the last two checks. */
let utilization = 0;
let heap = 0;
let collections = 0;

function watch(): void {
  collections = 0;
  collectWhenIdle(
    () => (collections += 1),
    () => heap,
  );
}

const secondsPass = (seconds: number): void => jest.advanceTimersByTime(seconds * 1_000);

beforeEach(() => {
  jest.useFakeTimers();
  jest
    .spyOn(performance, 'eventLoopUtilization')
    .mockImplementation(() => ({ idle: 0, active: 0, utilization }));
});
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

test('garbage is collected once, in the first idle second', () => {
  [heap, utilization] = [40 * MIB, 0.9];
  watch();
  secondsPass(5);
  expect(collections).toBe(0);
  utilization = 0.05;
  secondsPass(1);
  expect(collections).toBe(1);
  heap = 80 * MIB;
  secondsPass(5);
  expect(collections).toBe(1);
});

test('a large heap is not collected', () => {
  [heap, utilization] = [129 * MIB, 0];
  watch();
  secondsPass(5);
  expect(collections).toBe(0);
});

test('a process that was not started with --expose-gc goes on', () => {
  utilization = 0;
  collectWhenIdle();
  expect(() => secondsPass(1)).not.toThrow();
});
