import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { typeIds } from '../../../../infra/ids/typeIds.ts';
import { createHash, randomBytes } from 'node:crypto';
import {
  claimedKeyId,
  hashApiKey,
  isStrongKey,
  mintApiKey,
  hashesAreEqual,
} from '../../../../shared/accounts/apiKey.ts';

describe('an API key', () => {
  test('that was minted carries its id and a secret of 256 bits that no other key has', () => {
    const id = typeIds.typeId('key');
    const keys = Array.from({ length: 100 }, () => mintApiKey(id));
    expect(new Set(keys).size).toBe(100);
    for (const key of keys) {
      expect(key).toMatch(new RegExp(`^tl_${id}_[0-9a-f]{64}$`));
      expect(claimedKeyId(key)).toBe(id);
    }
  });

  test.each([
    'chosen-by-the-operator_7Qx2mVw9RkZp4LbN',
    '',
    'x',
    `tl_key_01kahz0b2re5v8k2s4n6t8w0y2_${'0'.repeat(63)}`,
    `tl_key_01kahz0b2re5v8k2s4n6t8w0y2_${'0'.repeat(65)}`,
    `tl_key_X_${'0'.repeat(64)}`,
    `tl___proto___${'0'.repeat(64)}`,
  ])('that was not minted claims no id: %j', (key) => {
    expect(claimedKeyId(key)).toBeUndefined();
  });

  test('that is random is strong: 32 bytes in hex or base64, 32 letters and digits, or a minted one', () => {
    const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
    for (let round = 0; round < 200; round += 1) {
      expect(isStrongKey(randomBytes(32).toString('hex'))).toBe(true);
      expect(isStrongKey(randomBytes(32).toString('base64'))).toBe(true);
      expect(isStrongKey([...randomBytes(40)].map((byte) => LETTERS[byte % 62]).join(''))).toBe(
        true,
      );
      expect(isStrongKey(mintApiKey(typeIds.typeId('key')))).toBe(true);
    }
  });

  test('of 128 random bits is strong, however they are written', () => {
    // The same keys each time: not one in a million is taken for weak, but one is.
    for (let round = 0; round < 20_000; round += 1) {
      const bits = createHash('md5').update(String(round)).digest();
      const hex = bits.toString('hex');
      const uuid = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
      for (const key of [hex, hex.toUpperCase(), uuid, `key-${bits.toString('base64')}-0123456`])
        if (!isStrongKey(key)) throw new Error(`${key} is taken for weak`);
    }
  });

  test('that repeats a dozen characters, or counts, with one counter or two in turn, is weak', () => {
    const visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
    const few = fc.string({ unit: visible, minLength: 1, maxLength: 12 });
    const start = fc.integer({ min: 0x21, max: 0x4e });
    const isWeak = (codeAt: (at: number) => number): boolean =>
      !isStrongKey(String.fromCharCode(...Array.from({ length: 32 }, (_, at) => codeAt(at))));
    fc.assert(fc.property(few, (word) => isWeak((at) => word.charCodeAt(at % word.length))));
    fc.assert(
      fc.property(start, start, fc.integer({ min: 0, max: 3 }), (even, odd, step) =>
        isWeak((at) => (at % 2 === 0 ? even : odd) + Math.floor(at / 2) * step),
      ),
    );
  });

  test.each([
    'a'.repeat(64),
    'a'.repeat(256),
    'abc'.repeat(80),
    'password'.repeat(16),
    'abcdefghijklmnopqrstuvwxyz0123456789',
    'zyxwvutsrqponmlkjihgfedcba9876543210',
    'a1b2c3d4e5f60718293a4b5c6d7e8f90',
    '00112233445566778899aabbccddeeff',
    'deadbeefcafebabedeadbeefcafebabe',
    'changeme-changeme-changeme-changeme',
    'aaaaaaaabbbbbbbbccccccccddddddddeeeeeeee',
    'correct-horse-battery-staple',
    'Zq7vKx2mWf9pRb4nLh8sTd3',
  ])('that is short, or repeats itself, or counts, is weak: %j', (key) => {
    expect(isStrongKey(key)).toBe(false);
  });

  test('is stored as a hash that does not contain it, and is the same only for the same key', () => {
    const [one, other] = [mintApiKey(typeIds.typeId('key')), mintApiKey(typeIds.typeId('key'))];
    expect(hashApiKey(one)).toMatch(/^[0-9a-f]{64}$/);
    expect(one).not.toContain(hashApiKey(one));
    expect(hashesAreEqual(hashApiKey(one), hashApiKey(one))).toBe(true);
    expect(hashesAreEqual(hashApiKey(one), hashApiKey(other))).toBe(false);
    expect(hashesAreEqual(hashApiKey(one), hashApiKey(one).slice(1))).toBe(false);
    expect(hashesAreEqual('', hashApiKey(one))).toBe(false);
  });
});
