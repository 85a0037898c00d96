import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { fold, rowMaps, type RowMaps } from '../../../../shared/projections/fold.ts';
import { planBatch } from '../../../../shared/projections/plan.ts';
import { deliveries, randomHistory } from '../../../support/builders/randomHistory.ts';
import { size } from '../../../support/jest/size.ts';

function apply(batches: readonly StoredEvent[][]): RowMaps {
  const rows = rowMaps();
  for (const batch of batches) expect(fold(planBatch(batch), rows, new Set()).parked).toEqual([]);
  return rows;
}

test('any valid history, in batches of any size and with any part delivered again, gives the rows of one delivery', () => {
  const histories = randomHistory('').chain((events) =>
    fc.tuple(fc.constant(events), deliveries(events)),
  );
  fc.assert(
    fc.property(histories, ([events, batches]) => {
      const once = apply([events]);
      expect(once.sessions.size).toBe(3);
      expect(apply(batches)).toEqual(once);
    }),
    { numRuns: size({ small: 150, full: 300 }) },
  );
});
