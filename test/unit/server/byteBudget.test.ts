import { expect, test } from '@jest/globals';
import { createByteBudget } from '../../../services/api/byteBudget.ts';

const SOON = { retriable: true, retryAfterSeconds: 1 };

test('one account gets its part of the bytes, and all together get all of them', () => {
  const take = createByteBudget(100, 50);
  const first = take('one', 50);
  expect(() => take('one', 1)).toThrow(expect.objectContaining({ code: 'rate_limited', ...SOON }));
  take('two', 50);
  expect(() => take('three', 1)).toThrow(expect.objectContaining({ code: 'overloaded', ...SOON }));
  first(0);
  take('three', 50);
});

test('what is given back can be taken again, once', () => {
  const take = createByteBudget(100, 100);
  const keep = take('one', 100);
  keep(30);
  const other = take('two', 70);
  expect(() => take('two', 1)).toThrow(expect.objectContaining({ code: 'overloaded' }));
  for (const give of [keep, keep, other, other]) give(0);
  take('three', 100);
  expect(() => take('four', 1)).toThrow(expect.objectContaining({ code: 'overloaded' }));
});
