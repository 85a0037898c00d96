import { expect, test } from '@jest/globals';
import { createBudget } from '../../../../../services/followers/replays/budget.ts';
import { replay } from '../../../../../shared/replays/decider.ts';
import type { ReplayEvent } from '../../../../../shared/replays/events.ts';
import { replay as stateAfter } from '../../../../support/builders/deciderSpecification.ts';
import {
  replayEnded,
  replaySessionStarted,
  replayStarted,
  replayTurnsCompared,
  turnComparison,
} from '../../../../support/builders/events.ts';

/** A budget of 30 tokens, of which a compared turn takes 12. */
function budgetOf30() {
  const events: ReplayEvent[] = [replayStarted({ budget_tokens: 30 }), replaySessionStarted()];
  const budget = createBudget({ state: () => stateAfter(replay, events) });
  return { budget, record: (...more: ReplayEvent[]) => void events.push(...more) };
}
const taken = { session_id: 'session_1', turn: 1, in: 'session_2', tokens: 12 };

test('what a turn took counts once, before it is recorded and after', () => {
  const { budget, record } = budgetOf30();
  budget.took(taken);
  budget.took(taken);
  expect([budget.uncompared('session_1'), budget.isSpent()]).toEqual([12, false]);
  record(replayTurnsCompared([turnComparison(1)]));
  budget.took(taken);
  expect([budget.uncompared('session_1'), budget.isSpent()]).toEqual([0, false]);
  budget.took({ ...taken, turn: 2, tokens: 17 });
  expect(budget.isSpent()).toBe(false);
  budget.took({ ...taken, turn: 2, tokens: 18 });
  expect(budget.isSpent()).toBe(true);
});

test('the tokens of one turn and its judges are told apart from those of the turns after it', () => {
  const { budget } = budgetOf30();
  for (const use of [
    { in: 'session_3', tokens: 1 },
    { turn: 2, tokens: 5 },
  ])
    budget.took({ ...taken, ...use });
  budget.took(taken);
  expect([budget.uncompared('session_1', 1), budget.uncompared('session_1')]).toEqual([13, 18]);
});

test('judges count beside the turn, and so does what was recorded of tries and of turns that are not compared', () => {
  const { budget, record } = budgetOf30();
  budget.took(taken);
  budget.took({ ...taken, in: 'session_3', tokens: 18 });
  expect([budget.uncompared('session_1'), budget.isSpent()]).toEqual([30, true]);
  record({
    type: 'replay.session_ended.v1',
    data: { session_id: 'session_1', status: 'failed', other_tokens: 30 },
  });
  expect([budget.uncompared('session_1'), budget.isSpent()]).toEqual([0, true]);

  const tries = budgetOf30();
  tries.record(replayTurnsCompared([turnComparison(1, { other_tokens: 18 })]));
  expect(tries.budget.isSpent()).toBe(true);
  tries.record(replayEnded());
  expect(tries.budget.uncompared('session_1')).toBe(0);
});
