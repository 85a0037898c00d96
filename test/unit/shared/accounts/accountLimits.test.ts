import { expect, test } from '@jest/globals';
import { storeUnavailableError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { ReadModels } from '../../../../shared/ports/readModels.ts';
import { createLimitsCache } from '../../../../shared/accounts/accountLimits.ts';

/** Read models that can be changed and taken away, and a clock that can be put forward. */
function setUp() {
  const state = { runs: 1, away: false, asked: 0, now: 0 };
  const findAccount = (async () => {
    state.asked += 1;
    if (state.away) throw storeUnavailableError('away');
    return { limits: { runs: state.runs } };
  }) as unknown as ReadModels['findAccount'];
  return { state, limitsOf: createLimitsCache({ findAccount }, () => state.now) };
}

/** Lets everything happen that does not wait for a timer. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('limits are asked for once in half a second, and a change is obeyed then', async () => {
  const { state, limitsOf } = setUp();
  for (let request = 0; request < 10; request += 1)
    expect(await limitsOf('acct_1')).toEqual({ runs: 1 });
  expect(state.asked).toBe(1);
  state.runs = 2;
  state.now = 500;
  await limitsOf('acct_1');
  await settled();
  expect(await limitsOf('acct_1')).toEqual({ runs: 2 });
  expect(state.asked).toBe(2);
});

test('while the read models are away nobody is refused: what was known holds, or nothing', async () => {
  const { state, limitsOf } = setUp();
  await limitsOf('acct_1');
  state.away = true;
  state.now = 10_000;
  expect(await limitsOf('acct_1')).toEqual({ runs: 1 });
  await settled();
  expect(await limitsOf('acct_1')).toEqual({ runs: 1 });
  expect(await limitsOf('acct_2')).toEqual({});
});
