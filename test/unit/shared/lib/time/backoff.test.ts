import { describe, expect, test } from '@jest/globals';
import { backoffMs, createBackoff, retry } from '../../../../../shared/lib/time/backoff.ts';

const NONE = { firstMs: 0, longestMs: 0 };

describe('the pauses of a back-off', () => {
  test('double up to the longest, and begin again when it is reset', () => {
    const pauses = createBackoff({ firstMs: 100, longestMs: 500 });
    const five = () => Array.from({ length: 5 }, pauses.next);
    expect(five()).toEqual([100, 200, 400, 500, 500]);
    pauses.reset();
    expect(five()).toEqual([100, 200, 400, 500, 500]);
  });

  test('stay the longest however many failures there were', () => {
    expect(backoffMs({ firstMs: 1, longestMs: 60_000 }, 1_000_000)).toBe(60_000);
  });

  test('are spread between the two shares that are given, and not all the same', () => {
    const schedule = { firstMs: 100, longestMs: 1_000, spread: [0.5, 1] } as const;
    const pauses = Array.from({ length: 200 }, () => backoffMs(schedule, 1));
    expect(pauses.every((ms) => ms >= 100 && ms <= 200)).toBe(true);
    expect(new Set(pauses).size).toBeGreaterThan(100);
  });
});

describe('work that is tried again', () => {
  const failing = (times: number) => {
    let tries = 0;
    return async () => {
      tries += 1;
      if (tries <= times) throw new Error(`failure ${tries}`);
      return tries;
    };
  };

  test('is done once where it succeeds, and again after each failure until then', async () => {
    const again = () => true;
    expect(await retry(failing(0), { pauses: NONE, shouldRetry: again })).toBe(1);
    expect(await retry(failing(3), { pauses: NONE, shouldRetry: again })).toBe(4);
  });

  test('ends with the error that is not to be tried again', async () => {
    const seen: unknown[] = [];
    const again = (error: unknown, failures: number): boolean => {
      seen.push([(error as Error).message, failures]);
      return failures < 2;
    };
    await expect(retry(failing(9), { pauses: NONE, shouldRetry: again })).rejects.toThrow(
      'failure 2',
    );
    expect(seen).toEqual([
      ['failure 1', 1],
      ['failure 2', 2],
    ]);
  });

  test('ends with the reason of a signal that aborts in a pause', async () => {
    const stop = new AbortController();
    const pauses = { firstMs: 60_000, longestMs: 60_000 };
    const working = retry(failing(9), { pauses, shouldRetry: () => true, signal: stop.signal });
    setTimeout(() => stop.abort(new Error('stopped')), 10);
    await expect(working).rejects.toThrow('stopped');
  });
});
