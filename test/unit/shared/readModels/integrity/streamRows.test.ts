import { expect, test } from '@jest/globals';
import {
  applyToRows,
  dropFinalRows,
  noRows,
  readStreamRows,
} from '../../../../../shared/readModels/integrity/streamRows.ts';
import { bytesOf, type ReadOptions } from '../../../../../shared/ports/eventStore.ts';
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

test('each large event is read and applied in a step of the event loop of its own', async () => {
  const { record } = recordHistory();
  const stream = 'session-session_1';
  const large = 'x'.repeat(200_000);
  const turns = [1, 2, 3].flatMap((turn) => [
    turnStarted(turn, { input: large }),
    turnCompleted(turn, { output: large }),
  ]);
  const recorded = [sessionStarted(), ...turns].map((event) => record({ stream }, event));
  let loopTurns = 0;
  let counting = setImmediate(function next() {
    loopTurns += 1;
    counting = setImmediate(next);
  });
  const readAt: number[] = [];
  async function readStream(_stream: string, { from = 0, maxBytes = Infinity }: ReadOptions) {
    readAt.push(loopTurns);
    let bytes = 0;
    return recorded.slice(from).filter((event) => {
      const fits = bytes < maxBytes;
      if (fits) bytes += bytesOf(event);
      return fits;
    });
  }
  const keys = { find: async () => new Map(), isErased: () => false };
  const { rows, revision } = await readStreamRows({ readStream, keys } as never, stream);
  clearImmediate(counting);
  expect([revision, rows.turns.size]).toEqual([6, 3]);
  expect(readAt.length).toBeGreaterThanOrEqual(6);
  expect(new Set(readAt).size).toBe(readAt.length);
});
