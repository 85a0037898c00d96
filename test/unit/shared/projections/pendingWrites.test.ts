import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Position } from '../../../../shared/ports/eventStore.ts';
import { createPendingWrites } from '../../../../shared/projections/pendingWrites.ts';

const at = (position: number): Position => String(position).padStart(6, '0') as Position;

test('of each id, the last position is pending until it is shown', () => {
  const write = fc.record({ id: fc.constantFrom('a', 'b', 'c'), step: fc.nat(3) });
  fc.assert(
    fc.property(fc.array(write), fc.nat(99), (writes, shown) => {
      const pending = createPendingWrites();
      const last: Record<string, number> = {};
      let position = 1;
      for (const { id, step } of writes) {
        position += step;
        last[id] = position;
        pending.add(id, at(position));
      }
      pending.forgetUpTo(at(shown));
      for (const id of ['a', 'b', 'c', 'd'])
        expect(pending.find(id)).toBe((last[id] ?? 0) > shown ? at(last[id]!) : undefined);
    }),
  );
});

test('an earlier position does not replace a later one', () => {
  const pending = createPendingWrites();
  pending.add('a', at(7));
  pending.add('a', at(6));
  expect(pending.find('a')).toBe(at(7));
});

test('with more than 10,000 ids, all queries wait for the oldest', () => {
  const pending = createPendingWrites();
  for (let id = 1; id <= 10_002; id += 1) pending.add(`${id}`, at(id));
  expect(pending.find('2')).toBe(at(2));
  expect(pending.find('another')).toBe(at(2));
  expect(pending.find('3')).toBe(at(3));
  pending.forgetUpTo(at(2));
  expect(pending.find('another')).toBeUndefined();
  expect(pending.find('10002')).toBe(at(10_002));
});
