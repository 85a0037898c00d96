import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Position } from '../../../../shared/ports/eventStore.ts';
import { createPendingWrites } from '../../../../shared/projections/pendingWrites.ts';

const at = (position: number): Position => String(position).padStart(6, '0') as Position;

test('of each id, the last position is pending until it is shown', () => {
  const write = fc.record({ id: fc.constantFrom('a', 'b', 'c'), position: fc.nat(99) });
  fc.assert(
    fc.property(fc.array(write), fc.nat(99), (writes, shown) => {
      const reached = { position: at(0) };
      const pending = createPendingWrites(() => reached.position);
      for (const { id, position } of writes) pending.add(id, at(position));
      reached.position = at(shown);
      for (const id of ['a', 'b', 'c', 'd']) {
        const last = Math.max(0, ...writes.filter((w) => w.id === id).map((w) => w.position));
        expect(pending.find(id)).toBe(last > shown ? at(last) : undefined);
      }
    }),
  );
});

test('all is pending before the first position is shown', () => {
  const pending = createPendingWrites(() => undefined);
  pending.add('a', at(1));
  expect(pending.find('a')).toBe(at(1));
});

test('of more than 10,000 ids, the oldest are waited for by everybody', () => {
  let shown = at(0);
  const pending = createPendingWrites(() => shown);
  for (let id = 1; id <= 10_002; id += 1) pending.add(`${id}`, at(id));
  expect(pending.find('2')).toBe(at(2));
  expect(pending.find('another')).toBe(at(2));
  expect(pending.find('3')).toBe(at(3));
  shown = at(2);
  expect(pending.find('another')).toBeUndefined();
  expect(pending.find('10002')).toBe(at(10_002));
});
