import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { typeIds } from '../../../infra/ids/typeIds.ts';
import { bucketOf } from '../../../infra/sqlite/readModels/buckets.ts';

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
