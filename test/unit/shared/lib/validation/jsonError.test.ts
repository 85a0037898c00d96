import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  describeJsonError,
  findJsonError,
} from '../../../../../shared/lib/validation/jsonError.ts';
import { measureProcessorTime } from '../../../../../shared/lib/time/processorTime.ts';

test.each([
  ['{"input":hello}', 'line 1, column 10 has an unexpected "h"'],
  [`'{"input":"x"}'`, `line 1, column 1 has an unexpected "'"`],
  ['{"a":1,}', 'line 1, column 8 has an unexpected "}"'],
  ['[1,]', 'line 1, column 4 has an unexpected "]"'],
  ['{\n  "a": 1\n  "b": 2\n}', String.raw`line 3, column 3 has an unexpected "\""`],
  ["{'a':1}", `line 1, column 2 has an unexpected "'"`],
  ['{"a":True}', 'line 1, column 6 has an unexpected "T"'],
  ['{"a" 1}', 'line 1, column 6 has an unexpected "1"'],
  ['{"a":1}}', 'line 1, column 8 has an unexpected "}"'],
  ['[1}', 'line 1, column 3 has an unexpected "}"'],
  ['{"a":"one\ntwo"}', String.raw`line 1, column 10 has an unexpected "\n"`],
  [String.raw`{"a":"\x"}`, String.raw`line 1, column 7 has an unexpected "\\"`],
  ['{"a":01}', 'line 1, column 7 has an unexpected "1"'],
  ['[😀]', 'line 1, column 2 has an unexpected "😀"'],
  ['{"a":"😀", b}', 'line 1, column 12 has an unexpected "b"'],
  ['{"a":[1,2', 'it ends too early, at line 1, column 10'],
  ['{"a":"x', 'it ends too early, at line 1, column 8'],
  ['{"a":\n', 'it ends too early, at line 2, column 1'],
  ['tru', 'line 1, column 1 has an unexpected "t"'],
])('%j: %s', (text, described) => {
  expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
  expect(describeJsonError(text)).toBe(described);
});

const CHARACTERS = 2_000_000;
const ESCAPES = `"${'\\n'.repeat(CHARACTERS / 2)}"`;

/** The processor time of ten calls, the first of which compile what is called. */
const cpuMsOf = (work: () => unknown): number =>
  measureProcessorTime(() => {
    for (let times = 0; times < 10; times += 1) work();
  }).cpuMs;

test.each([
  ['escapes', ESCAPES],
  ['strings with escapes', `[${`"${String.raw`\"`.repeat(50)}",`.repeat(CHARACTERS / 103)}0]`],
  ['lines', `${'\n'.repeat(CHARACTERS)}0`],
])('the place after 2 MB of %s is found in about the time that parsing takes', (_what, json) => {
  const broken = `${json}x`;
  expect(findJsonError(broken).character).toBe('x');
  // Seven to fifteen times as long with an object for each escape, or a list of all lines.
  const limitMs = 4 * cpuMsOf(() => JSON.parse(ESCAPES) as unknown);
  expect(cpuMsOf(() => findJsonError(broken))).toBeLessThan(limitMs);
});

test('an error is found where it is, or at the start of the word or escape that it is in', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), (json, number) => {
      expect(findJsonError(json).character).toBeUndefined();
      const offset = number % (json.length + 1);
      const broken = `${json.slice(0, offset)}\u0001${json.slice(offset)}`;
      const found = findJsonError(broken).column - 1;
      expect(found).toBeLessThanOrEqual(offset);
      expect(found).toBeGreaterThan(offset - 6);
    }),
  );
});
