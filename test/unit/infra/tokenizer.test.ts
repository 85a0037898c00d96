import { describe, expect, test } from '@jest/globals';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { createTokenCounter } from '../../../infra/tokenizer/tokenCounter.ts';

const counter = createTokenCounter();
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
    expect(await counter.count(text)).toBe(reference(text));
  });

  test('counts the names of special tokens as text', async () => {
    expect(await counter.count('<|endoftext|>')).toBe(reference('<|endoftext|>'));
    expect(await counter.count('<|endoftext|>')).toBeGreaterThan(1);
  });

  test('counts a long text of words exactly', async () => {
    const text = 'The quick brown fox, aged 12, jumps over the lazy dog.\n'.repeat(2_000);
    expect(await counter.count(text)).toBe(reference(text));
  });

  test('counts 512 KiB of one letter to within a token per 256', async () => {
    const letters = 512 * 1024;
    // The tokenizer itself would take the square of the length: eight letters make a token.
    const tokens = await counter.count('a'.repeat(letters));
    expect(tokens).toBeGreaterThanOrEqual(letters / 8);
    expect(tokens).toBeLessThanOrEqual(letters / 8 + letters / 256);
  });

  test('never cuts a character in two', async () => {
    const emoji = '😀'.repeat(20_000);
    expect(await counter.count(emoji)).toBe(20_000 * reference('😀'));
    expect(await counter.count(`x${emoji}`)).toBe(reference('x') + 20_000 * reference('😀'));
  });

  test('lets others have their turn while it counts a long text', async () => {
    let turns = 0;
    const other = setInterval(() => (turns += 1), 0);
    await counter.count('many words make a long text '.repeat(20_000));
    clearInterval(other);
    expect(turns).toBeGreaterThan(3);
  });
});
