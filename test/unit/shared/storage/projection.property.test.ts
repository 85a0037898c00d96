import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { bytesOf, type StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { fold, rowMaps } from '../../../../shared/projections/fold.ts';
import { planBatch } from '../../../../shared/projections/plan.ts';
import { deliveries, randomHistory } from '../../../support/builders/randomHistory.ts';
import { size } from '../../../support/jest/size.ts';

/** What the events of a log come to, by account and day, and in total. */
function told(events: readonly StoredEvent[]): Record<string, { events: number; bytes: number }> {
  const sums: Record<string, { events: number; bytes: number }> = {};
  for (const event of events) {
    const { account_id, recorded_at } = JSON.parse(event.metadata) as Record<string, string>;
    for (const key of [`${account_id}/${recorded_at!.slice(0, 10)}`, `${account_id}/`]) {
      const sum = (sums[key] ??= { events: 0, bytes: 0 });
      sum.events += 1;
      sum.bytes += bytesOf(event);
    }
  }
  return sums;
}

const counted = (rows: ReturnType<typeof rowMaps>) =>
  Object.fromEntries([...rows.storage].map(([key, { events, bytes }]) => [key, { events, bytes }]));

test('storage is what the log holds, however it was delivered, and with streams that are parked', () => {
  const histories = randomHistory('').chain((events) =>
    fc.tuple(
      fc.constant(events),
      deliveries(events),
      fc.subarray(events.map(({ stream }) => stream)),
    ),
  );
  fc.assert(
    fc.property(histories, ([events, batches, parked]) => {
      const rows = rowMaps();
      for (const batch of batches) fold(planBatch(batch), rows, new Set(parked));
      expect(counted(rows)).toEqual(told(events));
    }),
    { numRuns: size({ small: 150, full: 300 }) },
  );
});
