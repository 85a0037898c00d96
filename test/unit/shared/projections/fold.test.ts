import { expect, test } from '@jest/globals';
import { fold, rowMaps } from '../../../../shared/projections/fold.ts';
import { planBatch } from '../../../../shared/projections/plan.ts';
import {
  sessionErased,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../../support/builders/events.ts';
import { recordHistory } from '../../../support/builders/history.ts';

/** A map that counts the entries that a loop over it reads. */
class CountingMap<Value> extends Map<string, Value> {
  read = 0;
  override *[Symbol.iterator](): MapIterator<[string, Value]> {
    for (const entry of super[Symbol.iterator]()) {
      this.read += 1;
      yield entry;
    }
  }
}

test('a removal costs its own rows, however many rows of others are loaded', () => {
  const { record } = recordHistory();
  const names = Array.from({ length: 50 }, (_, index) => `session-session_${index}`);
  const ofAll = (...events: Parameters<typeof record>[1][]) =>
    names.flatMap((stream) => events.map((event) => record({ stream }, event)));
  const rows = rowMaps();
  fold(planBatch(ofAll(sessionStarted(), turnStarted(1), turnCompleted(1))), rows, new Set());
  const turns = new CountingMap([...rows.turns]);
  rows.turns = turns;
  const before = ofAll(turnStarted(2));
  const { dirty } = fold(planBatch([...before, ...ofAll(sessionErased())]), rows, new Set());
  expect([turns.size, dirty.turns.size, dirty.sessions.size]).toEqual([0, 0, 50]);
  expect(turns.read).toBeLessThanOrEqual(100);
});

test('a removal takes the rows that the same batch has put since the first removal', () => {
  const { record } = recordHistory();
  const [first, second] = [{ stream: 'session-session_1' }, { stream: 'session-session_2' }];
  const rows = rowMaps();
  const events = [
    record(first, sessionStarted()),
    record(second, sessionStarted()),
    record(first, sessionErased()),
    record(second, turnStarted(1)),
    record(second, turnCompleted(1)),
    record(second, sessionErased({ reason: 'account' })),
  ];
  const { dirty, parked } = fold(planBatch(events), rows, new Set());
  expect(parked).toEqual([]);
  expect([rows.turns, dirty.turns].map(({ size }) => size)).toEqual([0, 0]);
  expect([rows.usage, dirty.usage].map(({ size }) => size)).toEqual([0, 0]);
});
