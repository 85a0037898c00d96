import { afterEach, expect, jest, test } from '@jest/globals';
import { createRetryPolicy } from '../../../../../services/followers/relay/retries.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';

afterEach(() => {
  jest.restoreAllMocks();
});

const TAKE_OVER_MS = 1_000;
const UNAVAILABLE = new TurnlogError('publisher_unavailable', 'No.', { retriable: true });

test('a relay whose take-overs fail steps back after several within half of the take-over time', () => {
  let now = 5_000;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  const policy = createRetryPolicy({
    logger: { warn: () => undefined },
    lag: { position: () => undefined },
    takeOverMs: TAKE_OVER_MS,
  } as never);
  const stepsBackAt = (ms: number): boolean => {
    now = 5_000 + ms;
    const attempt = { tookOver: true, madeProgress: false, published: false, ledMs: 0 };
    return policy.onFailure(UNAVAILABLE, attempt).stepsBack;
  };
  expect([0, 400, 499, 499].map(stepsBackAt)).toEqual([false, false, false, false]);
  expect([500, 501].map(stepsBackAt)).toEqual([true, true]);
});
