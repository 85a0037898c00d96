import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  jsonSlices,
  nestedJson,
  prettyJsonSlices,
  SLICE_CHARS,
} from '../../../../shared/lib/slices.ts';

/** Values with texts and lists that are longer than a slice. */
const values = fc.letrec((tie) => ({
  text: fc
    .tuple(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('', 'é', '😀', '\ud83d', '\n"\\\u0001'),
      fc.constantFrom(0, 1, 3, SLICE_CHARS / 2, SLICE_CHARS),
    )
    .map(([start, repeated, times]) => start + repeated.repeat(times)),
  numbers: fc.constantFrom(0, 9, SLICE_CHARS).map((length) => Array.from({ length }, () => 1)),
  value: fc.oneof(
    { maxDepth: 3 },
    tie('text'),
    tie('numbers'),
    fc.constantFrom(null, true, -1.5, {}, []),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom('a', 'é"', '__proto__', '1'), tie('value')),
    fc.record({ a: fc.constant(undefined), b: tie('value') }),
  ),
})).value;

test.each([
  ['', jsonSlices, undefined],
  ['indented ', prettyJsonSlices, 2],
])('the slices of a value are its %sJSON, and short', (_layout, slicesOf, indent) => {
  fc.assert(
    fc.property(values, (value) => {
      const slices = [...slicesOf(value)];
      expect(slices.join('')).toBe(JSON.stringify(value, null, indent));
      // A character takes at most six as JSON.
      for (const { length } of slices) expect(length).toBeLessThanOrEqual(7 * SLICE_CHARS);
    }),
    { numRuns: 50 },
  );
});

test('the slices of JSON in a text are what encoding it twice makes', () => {
  fc.assert(
    fc.property(values, (value) => {
      expect([...jsonSlices({ text: nestedJson(value) })].join('')).toBe(
        JSON.stringify({ text: JSON.stringify(value) }),
      );
    }),
    { numRuns: 50 },
  );
});

test('a function is called when its value is due, and not before', () => {
  let calls = 0;
  const items = Array.from({ length: 4 }, () => () => {
    calls += 1;
    return 'x'.repeat(SLICE_CHARS);
  });
  const callsBeforeSlice: number[] = [];
  for (const _slice of jsonSlices({ items })) callsBeforeSlice.push(calls);
  expect(new Set(callsBeforeSlice)).toEqual(new Set([0, 1, 2, 3, 4]));
  const short = [() => ({ a: 1 }), () => null];
  // An empty slice before each value lets other requests run, however long making it takes.
  expect([...jsonSlices(short)]).toEqual(['[', '{"a":1},', 'null]']);
});
