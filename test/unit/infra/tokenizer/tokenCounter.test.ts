import { afterAll, describe, expect, test } from '@jest/globals';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { createTokenCounter } from '../../../../infra/tokenizer/tokenCounter.ts';

const counter = createTokenCounter();
afterAll(async () => {
  await counter[Symbol.asyncDispose]();
});

const countOf = (text: string): Promise<number> => counter.count([text], 'acct_1');
const reference = (text: string): number => encode(text, { disallowedSpecial: new Set() }).length;

describe('the token counter', () => {
  test.each([
    '',
    'Hello world',
    'ünïcödé 😀 漢字',
    'const a = () => 42;\n\n\tdone',
    '   leading',
    'trailing   ',
    '12345678',
  ])('counts %j as the tokenizer does', async (text) => {
    expect(await countOf(text)).toBe(reference(text));
  });

  test('counts the names of special tokens as text', async () => {
    expect(await countOf('<|endoftext|>')).toBe(reference('<|endoftext|>'));
    expect(await countOf('<|endoftext|>')).toBeGreaterThan(1);
  });

  test('counts a long text of words exactly', async () => {
    const text = 'The quick brown fox, aged 12, jumps over the lazy dog.\n'.repeat(2_000);
    expect(await countOf(text)).toBe(reference(text));
  });

  test('counts many texts, short, empty and long, as one by one', async () => {
    const words = 'many words make a text ';
    const texts = Array.from({ length: 300 }, (_, at) =>
      words.repeat(at % 50 === 0 ? 500 : at % 9),
    );
    const expected = texts.reduce((sum, text) => sum + reference(text), 0);
    expect(await counter.count(texts, 'acct_1')).toBe(expected);
  });

  test('counts 512 KiB of one letter to within a token per 256', async () => {
    const letters = 512 * 1024;
    // The tokenizer itself would take the square of the length: eight letters make a token.
    const tokens = await countOf('a'.repeat(letters));
    expect(tokens).toBeGreaterThanOrEqual(letters / 8);
    expect(tokens).toBeLessThanOrEqual(letters / 8 + letters / 256);
  });

  test('never cuts a character in two', async () => {
    const emoji = '😀'.repeat(20_000);
    expect(await countOf(emoji)).toBe(20_000 * reference('😀'));
    expect(await countOf(`x${emoji}`)).toBe(reference('x') + 20_000 * reference('😀'));
  });

  test('stops counting once there are more tokens than were asked for', async () => {
    const text = 'many words make a long text '.repeat(20_000);
    const counted = await counter.count([text], 'acct_1', 100);
    expect(counted).toBeGreaterThan(100);
    expect(counted).toBeLessThan(reference(text) / 2);
  });

  test('lets others have their turn while it counts a long text', async () => {
    let turns = 0;
    const other = setInterval(() => (turns += 1), 0);
    await countOf('many words make a long text '.repeat(20_000));
    clearInterval(other);
    expect(turns).toBeGreaterThan(3);
  });
});
