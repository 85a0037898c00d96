import { setImmediate } from 'node:timers/promises';
import { afterAll, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { createTextDiffer } from '../../../../infra/textdiff/textDiffer.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { TextPair } from '../../../../shared/replays/comparison/textDiffer.ts';

const differ = createTextDiffer();
afterAll(async () => {
  await differ[Symbol.asyncDispose]();
});
const diffOf = (texts: TextPair, account = 'acct_1') => differ.diffOf(texts, account);

const words = (letter: string, count: number): string =>
  Array.from({ length: count }, (_, index) => `${letter}${index}`).join(' ');

test('what is the same and what is removed is the recorded output; with what is added, the replayed one', async () => {
  const output = fc
    .array(fc.constantFrom('the ', 'sum', ' is', '\n', '😀', '42', '.', '  '), { maxLength: 20 })
    .map((pieces) => pieces.join(''));
  await fc.assert(
    fc.asyncProperty(output, output, async (recorded, replayed) => {
      const diff = (await diffOf({ recorded, replayed }))!;
      const without = (op: string) =>
        diff
          .filter((part) => part.op !== op)
          .map(({ text }) => text)
          .join('');
      expect([without('added'), without('removed')]).toEqual([recorded, replayed]);
    }),
  );
});

test('an answer of another model, each word of which is another one, is compared', async () => {
  const diff = await diffOf({ recorded: words('a', 500), replayed: words('b', 500) });
  expect(diff?.filter(({ op }) => op === 'added').length).toBeGreaterThan(400);
});

test('the longest outputs are compared where few of their words differ', async () => {
  const recorded = 'a '.repeat(LIMITS.replays.diffChars / 2).split(' ');
  const replayed = recorded.map((word, index) => (index % 200 === 0 ? 'b' : word));
  const diff = await diffOf({ recorded: recorded.join(' '), replayed: replayed.join(' ') });
  expect(diff?.filter(({ op }) => op === 'added').length).toBeGreaterThan(150);
});

test('outputs of which nearly all differs are given up, and hold nothing up meanwhile', async () => {
  const [recorded, replayed] = ['a', 'b'].map((letter) =>
    words(letter, 20_000).slice(0, LIMITS.replays.diffChars),
  );
  const state = { isDone: false };
  const diff = diffOf({ recorded: recorded!, replayed: replayed! }).finally(
    () => (state.isDone = true),
  );
  let turns = 0;
  for (; !state.isDone; turns += 1) await setImmediate();
  expect(await diff).toBeUndefined();
  // Of the event loop: found in this thread, it would have had one.
  expect(turns).toBeGreaterThan(100);
  expect(await diffOf({ recorded: 'a b', replayed: 'a c' })).toEqual([
    { op: 'same', text: 'a ' },
    { op: 'removed', text: 'b' },
    { op: 'added', text: 'c' },
  ]);
});
