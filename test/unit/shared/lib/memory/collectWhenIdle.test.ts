import { expect, jest, test, afterEach, beforeEach } from '@jest/globals';
import { collectWhenIdle } from '../../../../../shared/lib/memory/collectWhenIdle.ts';
import { MIB } from '../../../../../shared/lib/units.ts';

/** How busy the event loop was between the last two checks. */
let utilization = 0;
/** The heap; a collection leaves `live`. */
let heap = 0;
let live = 0;
let collections = 0;

function watch(): void {
  collections = 0;
  collectWhenIdle(
    () => {
      collections += 1;
      heap = live;
    },
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

test('garbage is collected once in the first idle second', () => {
  [heap, live, utilization] = [40 * MIB, 25 * MIB, 0.9];
  watch();
  secondsPass(5);
  expect(collections).toBe(0);
  utilization = 0.05;
  secondsPass(5);
  expect(collections).toBe(1);
});

test('garbage is collected again when the heap has grown and the thread is idle', () => {
  [heap, live, utilization] = [40 * MIB, 25 * MIB, 0];
  watch();
  secondsPass(1);
  heap = 40 * MIB;
  secondsPass(5);
  expect(collections).toBe(1);
  [heap, utilization] = [42 * MIB, 0.9];
  secondsPass(5);
  expect(collections).toBe(1);
  utilization = 0;
  secondsPass(5);
  expect(collections).toBe(2);
});

test('a heap that stays large is collected no more', () => {
  [heap, live, utilization] = [400 * MIB, 200 * MIB, 0];
  watch();
  secondsPass(1);
  heap = 400 * MIB;
  secondsPass(5);
  expect(collections).toBe(1);
});

test('a process that was not started with --expose-gc goes on', () => {
  utilization = 0;
  collectWhenIdle();
  expect(() => secondsPass(1)).not.toThrow();
});
