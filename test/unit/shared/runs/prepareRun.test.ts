import { expect, test } from '@jest/globals';
import { isPreparationCurrent } from '../../../../shared/runs/prepareRun.ts';
import {
  createRunsInFlight,
  shutdownError,
} from '../../../../shared/runs/queueing/runsInFlight.ts';

test('what a run prepared is current for less than a second', () => {
  const runs = createRunsInFlight();
  const preparedAt = 1_000;
  expect(isPreparationCurrent({ preparedAt }, runs, preparedAt + 999)).toBe(true);
  expect(isPreparationCurrent({ preparedAt }, runs, preparedAt + 1_000)).toBe(false);
});

test('what a run prepared before runs were interrupted is not current', () => {
  const runs = createRunsInFlight();
  const preparedAt = performance.now();
  runs.interruptMatching(() => false, shutdownError());
  expect(isPreparationCurrent({ preparedAt }, runs, preparedAt)).toBe(false);
  const after = performance.now() + 1;
  expect(isPreparationCurrent({ preparedAt: after }, runs, after)).toBe(true);
});
