import { expect, test } from '@jest/globals';
import {
  countWait,
  renewWaitBudget,
  waitLimitMs,
  withWaitBudget,
} from '../../../../../shared/lib/time/waitBudget.ts';

const LIMIT_MS = 10_000;
const secondsAgo = (seconds: number): number => performance.now() - 1_000 * seconds;
const leftSeconds = (): number => Math.round(waitLimitMs(LIMIT_MS) / 1_000);
const unanswered = (): boolean => true;

test('the calls of a task share its limit, also after a wait in between', async () => {
  await withWaitBudget(LIMIT_MS, unanswered, async () => {
    expect(leftSeconds()).toBe(10);
    countWait(secondsAgo(6));
    await Promise.resolve();
    expect(leftSeconds()).toBe(4);
    countWait(secondsAgo(6));
    expect(leftSeconds()).toBe(4);
  });
});

test('a call never waits longer than its own limit, nor less than nothing', () => {
  withWaitBudget(LIMIT_MS, unanswered, () => {
    expect(waitLimitMs(3)).toBe(3);
    countWait(secondsAgo(60));
    expect(waitLimitMs(3)).toBe(0);
  });
});

test('a task that has got somewhere may wait for its whole limit again', () => {
  withWaitBudget(LIMIT_MS, unanswered, () => {
    countWait(secondsAgo(60));
    renewWaitBudget();
    expect(leftSeconds()).toBe(10);
  });
  renewWaitBudget();
  expect(leftSeconds()).toBe(10);
});

test('what calls wait side by side counts once', () => {
  withWaitBudget(LIMIT_MS, unanswered, () => {
    countWait(secondsAgo(4));
    countWait(secondsAgo(5));
    expect(leftSeconds()).toBe(6);
  });
});

test('tasks do not share a limit, and calls outside of a task have none', () => {
  withWaitBudget(LIMIT_MS, unanswered, () => countWait(secondsAgo(60)));
  expect(leftSeconds()).toBe(10);
  withWaitBudget(LIMIT_MS, unanswered, () => expect(leftSeconds()).toBe(10));
});

test('the limit ends with the beginning of the response', () => {
  let answered = false;
  withWaitBudget(
    LIMIT_MS,
    () => !answered,
    () => {
      countWait(secondsAgo(60));
      expect(leftSeconds()).toBe(0);
      answered = true;
      expect(leftSeconds()).toBe(10);
    },
  );
});
