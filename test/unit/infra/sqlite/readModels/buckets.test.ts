import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { typeIds } from '../../../../../infra/ids/typeIds.ts';
import { bucketOf, matchBlocks } from '../../../../../infra/sqlite/readModels/buckets.ts';

test('the bucket of a session is the millisecond in which its id was made', () => {
  const before = Date.now();
  const bucket = bucketOf(typeIds.typeId('session'));
  expect(bucket).toBeGreaterThanOrEqual(before - 1);
  expect(bucket).toBeLessThanOrEqual(Date.now() + 1_000);
});

test('of two ids the greater one never has the lower bucket', () => {
  const id = fc
    .array(fc.constantFrom(...Array.from('0123456789abcdefghjkmnpqrstvwxyz')), {
      minLength: 26,
      maxLength: 26,
    })
    .map((letters) => `session_${letters.join('')}`);
  fc.assert(
    fc.property(id, id, (one, other) => {
      const [lower, greater] = [one, other].toSorted();
      expect(bucketOf(lower!)).toBeLessThanOrEqual(bucketOf(greater!));
    }),
  );
});

test('the blocks of a piece are few, hold all of its buckets, and little else', () => {
  const bucket = fc.integer({ min: 0, max: 2 ** 42 - 1 });
  fc.assert(
    fc.property(bucket, bucket, (one, other) => {
      const [first, last] = [Math.min(one, other), Math.max(one, other)];
      const blocks = matchBlocks(first, last).slice(1, -1).split(' OR ');
      const bits = Number(/^b(\d+)x/.exec(blocks[0]!)![1]);
      const size = 2 ** bits;
      expect(blocks.length).toBeLessThanOrEqual(4);
      expect(blocks[0]).toBe(`b${bits}x${Math.floor(first / size)}`);
      expect(blocks.at(-1)).toBe(`b${bits}x${Math.floor(last / size)}`);
      expect(blocks.length * size).toBeLessThan(3 * Math.max(last - first + 1, 1024));
    }),
  );
});
