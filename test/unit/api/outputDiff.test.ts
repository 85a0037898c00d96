import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { diffOf } from '../../../services/api/outputDiff.ts';
import { LIMITS } from '../../../shared/limits.ts';

const { diffChars, diffMs } = LIMITS.replays;

test('what is the same and what is removed is the recorded output; with what is added, the replayed one', () => {
  const output = fc
    .array(fc.constantFrom('the ', 'sum', ' is', '\n', '😀', '42', '.', '  '), { maxLength: 20 })
    .map((words) => words.join(''));
  fc.assert(
    fc.property(output, output, (recorded, replayed) => {
      const found = diffOf({ recorded, replayed });
      const diff = 'diff' in found ? found.diff : [];
      const without = (op: string) =>
        diff
          .filter((part) => part.op !== op)
          .map(({ text }) => text)
          .join('');
      expect([without('added'), without('removed')]).toEqual([recorded, replayed]);
    }),
  );
});

test('an output that is too long is not compared word by word', () => {
  const recorded = 'a'.repeat(diffChars);
  expect(diffOf({ recorded, replayed: 'b' })).toHaveProperty('diff');
  expect(diffOf({ recorded: `${recorded}a`, replayed: 'b' })).toEqual({
    diff_omitted: 'too_long',
  });
});

test('outputs of which nearly all differs are given up in time', () => {
  const words = (letter: string) =>
    Array.from({ length: 10_000 }, (_, index) => `${letter}${index % 97}`).join(' ');
  const [recorded, replayed] = [words('a'), words('b')].map((text) => text.slice(0, diffChars));
  const began = performance.now();
  expect(diffOf({ recorded: recorded!, replayed: replayed! })).toEqual({
    diff_omitted: 'too_different',
  });
  // The clock is looked at between two steps, and other work goes on meanwhile.
  expect(performance.now() - began).toBeLessThan(diffMs + 2_000);
});
