import { afterEach, expect, jest, test } from '@jest/globals';
import {
  progressLogger,
  type LoggedProgress,
} from '../../../../../services/followers/projector/reports.ts';

let now = 0;
afterEach(() => void jest.restoreAllMocks());

/** What is logged of progress: a time in seconds, and what is reported then. */
function linesOf(
  reports: readonly [number, { caughtUp: boolean } & Partial<LoggedProgress>][],
): string[] {
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  now = 0;
  const lines: string[] = [];
  const info = (_fields: object, line: string): void => void lines.push(line);
  const report = progressLogger({ info, warn: info, error: info });
  for (const [seconds, reported] of reports) {
    now = seconds * 1_000;
    report({ percent: 99.6, generation: 1, events: 0, ...reported });
  }
  return lines;
}

test('read models that are being built say so, a line a second, and when they are up to date', () => {
  expect(
    linesOf([
      [0.5, { caughtUp: false }],
      [1.1, { caughtUp: false }],
      [1.5, { caughtUp: false }],
      [1.6, { caughtUp: true }],
    ]),
  ).toEqual([
    'The read models are being brought up to date: 99 % (0 events, 0/s)',
    'The read models are up to date',
  ]);
});

test('an ordinary burst of writes is worth no line', () => {
  expect(
    linesOf([
      [0.1, { caughtUp: true }],
      [60, { caughtUp: true }],
      [61, { caughtUp: false }],
      [65, { caughtUp: false }],
      [66, { caughtUp: true }],
    ]),
  ).toEqual([]);
});

test('read models that stay behind are, and so is a rebuild', () => {
  const behind = linesOf([
    [0.1, { caughtUp: true }],
    [11, { caughtUp: false }],
    [12, { caughtUp: true }],
  ]);
  const rebuilt = linesOf([
    [0.1, { caughtUp: true }],
    [2, { caughtUp: false, generation: 2 }],
    [3, { caughtUp: true, generation: 2 }],
  ]);
  expect([behind.length, rebuilt.length]).toEqual([2, 2]);
});

test('a line says how many events were applied, how fast, and how much time is left', () => {
  expect(
    linesOf([
      [0.5, { caughtUp: false, percent: 10, events: 1_000 }],
      [2.5, { caughtUp: false, percent: 30, events: 5_000 }],
      [4.5, { caughtUp: false, percent: 30, events: 5_400 }],
      [5, { caughtUp: true, percent: 100, events: 6_000 }],
      // Another catch-up has its own beginning.
      [20, { caughtUp: false, percent: 50, events: 9_000, generation: 2 }],
      [25, { caughtUp: false, percent: 75, events: 10_000, generation: 2 }],
    ]),
  ).toEqual([
    'The read models are being brought up to date: 30 % (4000 events, 2000/s, about 7 s left)',
    'The read models are being brought up to date: 30 % (4400 events, 1100/s, about 14 s left)',
    'The read models are up to date',
    'The read models are being brought up to date: 50 %',
    'The read models are being brought up to date: 75 % (1000 events, 200/s, about 5 s left)',
  ]);
});
