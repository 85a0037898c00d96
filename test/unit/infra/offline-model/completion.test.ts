import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from '@jest/globals';
import { generateCompletion } from '../../../../infra/offline-model/completion.ts';

const usageOf = async (...texts: string[]) => {
  const messages = texts.map((content) => ({ role: 'user', content }));
  return (await generateCompletion({ model: 'offline-echo', messages })).usage;
};
const words = (text: string): number => text.split(/\s+/).filter(Boolean).length;

const ALL_SPACES = Array.from({ length: 0x1_0000 }, (_, code) => String.fromCharCode(code)).filter(
  (unit) => /\s/.test(unit),
);

test('tokens are the words between white space of any kind', async () => {
  const others = ['a', '漢', '😀', '\ud83d', '\u180e', '\u200b', '\u0085', '-'];
  const unit = fc.constantFrom(...ALL_SPACES, ...others);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ unit }), { minLength: 1 }), async (texts) => {
      const expected = texts.reduce((sum, text) => sum + words(text), 0);
      expect((await usageOf(...texts)).prompt_tokens).toBe(expected);
    }),
  );
  const each = ALL_SPACES.join('a');
  expect((await usageOf(each)).prompt_tokens).toBe(ALL_SPACES.length - 1);
});

test('a word across the parts in which a long text is counted is one word, and others get their turn', async () => {
  let turns = 0;
  const ended = new AbortController();
  const others = (async () => {
    for (; !ended.signal.aborted; turns += 1) await setImmediate();
  })();
  const { prompt_tokens } = await usageOf('abcdefg '.repeat(8_192) + 'x'.repeat(32_000_000));
  ended.abort();
  await others;
  expect(prompt_tokens).toBe(8_193);
  expect(turns).toBeGreaterThan(3);
});
