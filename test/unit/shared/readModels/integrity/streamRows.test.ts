import { expect, test } from '@jest/globals';
import {
  applyToRows,
  dropFinalRows,
  noRows,
} from '../../../../../shared/readModels/integrity/streamRows.ts';
import type { DomainEvent } from '../../../../../shared/eventlog/eventTypes.ts';
import {
  replayStarted,
  replayTurnsCompared,
  sessionStarted,
  turnComparison,
  turnCompleted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';

function rowsOf(stream: string, events: readonly DomainEvent[]) {
  const { record } = recordHistory();
  const recorded = events.map((event) => record({ stream }, event));
  const state = noRows();
  const apply = (count: number): void => applyToRows(state, recorded.splice(0, count));
  return { state, apply };
}

test('a session whose ended turns are dropped goes on as before, but for one of them', () => {
  const events = [
    sessionStarted(),
    turnStarted(1),
    turnCompleted(1),
    turnStarted(2),
    turnCompleted(2),
    turnStarted(3),
    turnCompleted(3),
  ];
  const { state, apply } = rowsOf('session-session_1', events);
  apply(6);
  dropFinalRows(state, 'session_1/1');
  expect([...state.rows.turns.keys()]).toEqual(['session_1/1', 'session_1/3']);
  apply(1);
  expect(state.parked).toBe(false);
  expect(state.rows.turns.get('session_1/3')?.status).toBe('completed');
  expect(state.rows.sessions.get('session_1')).toMatchObject({ status: 'idle', turns: 3 });
});

test('the comparisons of a replay are dropped, but for one of them', () => {
  const events = [
    replayStarted(),
    replayTurnsCompared([turnComparison(1), turnComparison(2)]),
    replayTurnsCompared([turnComparison(3)]),
  ];
  const { state, apply } = rowsOf('replay-replay_1', events);
  apply(2);
  const [first] = state.rows.replay_turns.keys();
  dropFinalRows(state, first!);
  expect(state.rows.replay_turns.size).toBe(1);
  apply(1);
  expect(state.parked).toBe(false);
  expect(state.rows.replay_turns.size).toBe(2);
});
