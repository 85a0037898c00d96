import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createComparisonBuffer } from '../../../../../services/followers/replays/comparisonBuffer.ts';
import { createTransientRetry } from '../../../../../services/followers/replays/transientFailures.ts';
import { replay, type ReplayCommand } from '../../../../../shared/replays/decider.ts';
import type { ReplayEvent } from '../../../../../shared/replays/events.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { replay as stateAfter } from '../../../../support/builders/deciderSpecification.ts';
import { replayStarted, turnComparison } from '../../../../support/builders/events.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const { comparedAtOnce, comparedWithinMs } = LIMITS.replays;

/** The turns of each event that a stream takes, which may fail, and takes its time. */
function comparing({ tookMs = 0 } = {}) {
  const events: ReplayEvent[] = [replayStarted()];
  let failures = 0;
  let last = Promise.resolve();
  const log = {
    async record(command: ReplayCommand): Promise<void> {
      const before = last;
      const done = Promise.withResolvers<void>();
      last = done.promise;
      await before;
      await sleep(tookMs);
      done.resolve();
      failures -= 1;
      if (failures >= 0) throw storeUnavailableError('It is away.');
      events.push(...replay.decide(command, stateAfter(replay, events)));
    },
  };
  const stop = new AbortController();
  const retry = createTransientRetry({ warn: () => undefined }, stop.signal);
  return {
    comparisons: createComparisonBuffer(log, 'session_1', retry),
    stop,
    fail: (times: number) => void (failures = times),
    told: () =>
      events.flatMap(({ type, data }) =>
        type === 'replay.turns_compared.v1' ? [data.turns.map(({ turn }) => turn)] : [],
      ),
    ended: () => events.filter(({ type }) => type === 'replay.session_ended.v1').length,
  };
}

test('a turn is recorded in a while, also where nothing follows it, and after trouble', async () => {
  const { comparisons, told, fail } = comparing();
  fail(1);
  comparisons.add(turnComparison(1));
  comparisons.add(turnComparison(2));
  expect(told()).toEqual([]);
  expect(
    await eventually(
      async () => told(),
      ({ length }) => length > 0,
    ),
  ).toEqual([[1, 2]]);
  comparisons.add(turnComparison(3));
  expect(
    await eventually(
      async () => told(),
      ({ length }) => length > 1,
    ),
  ).toEqual([[1, 2], [3]]);
});

test('turns that are short are recorded together', async () => {
  const { comparisons, told } = comparing();
  for (let turn = 1; turn <= comparedAtOnce; turn += 1) {
    expect(comparisons.isFull()).toBe(false);
    comparisons.add(turnComparison(turn));
  }
  expect(comparisons.isFull()).toBe(true);
  await comparisons.flush();
  expect(told().map(({ length }) => length)).toEqual([comparedAtOnce]);
});

test('what is added while others are recorded is neither lost nor recorded twice', async () => {
  const { comparisons, told, ended } = comparing({ tookMs: 20 });
  comparisons.add(turnComparison(1));
  const first = comparisons.flush();
  comparisons.add(turnComparison(2));
  const second = comparisons.flush();
  comparisons.add(turnComparison(3));
  await Promise.all([first, second, comparisons.flush({ status: 'completed' })]);
  expect(told()).toEqual([[1], [2], [3]]);
  expect(ended()).toBe(1);
  await comparisons.flush();
  expect(told()).toHaveLength(3);
});

test('nothing is recorded once it is closed, or was left', async () => {
  const [closed, left] = [comparing(), comparing()];
  for (const { comparisons } of [closed, left]) comparisons.add(turnComparison(1));
  left.stop.abort(new Error('left'));
  await closed.comparisons.close();
  await sleep(comparedWithinMs + 100);
  await left.comparisons.close();
  expect([closed.told(), left.told()]).toEqual([[], []]);
});
