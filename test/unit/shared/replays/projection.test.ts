import { expect, test } from '@jest/globals';
import type { ReplayEvent } from '../../../../shared/replays/events.ts';
import { fold, listRowPlaces, rowMaps } from '../../../../shared/projections/fold.ts';
import { planBatch } from '../../../../shared/projections/plan.ts';
import {
  replayEnded,
  replaySessionEnded,
  replaySessionStarted,
  replayStarted,
  replayTurnsCompared,
  turnComparison,
} from '../../../support/builders/events.ts';
import { recordHistory } from '../../../support/builders/history.ts';

/** Bytes of the rows, as JSON, that each event of a replay reads and writes. */
function bytesPerEvent(checks: string): number[] {
  const { record } = recordHistory();
  const events: ReplayEvent[] = [
    replayStarted({ checks, instruction: checks }),
    replaySessionStarted('session_1'),
    replayTurnsCompared([turnComparison(1)]),
    replaySessionEnded(),
    replayEnded(),
  ];
  const rows = rowMaps();
  return events.map((event) => {
    const plan = planBatch([record({ stream: 'replay-replay_1' }, event)]);
    const read = listRowPlaces(plan).map(({ table, id }) => rows[table].get(id) ?? null);
    const { dirty, parked } = fold(plan, rows, new Set());
    expect(parked).toEqual([]);
    const written = Object.values(dirty).flatMap((byId) => [...byId.values()]);
    return JSON.stringify([...read, ...written]).length;
  });
}

test('an event of a replay rewrites none of its settings, however large they are', () => {
  const [started, ...later] = bytesPerEvent('x'.repeat(100_000));
  const [startedSmall, ...laterSmall] = bytesPerEvent('x');
  expect(started).toBeGreaterThan(startedSmall! + 150_000);
  // The storage of the account has more digits.
  expect(Math.max(...later)).toBeLessThan(Math.max(...laterSmall) + 20);
});
