import { describe, expect, test } from '@jest/globals';
import { typeIds } from '../../../infra/ids/typeIds.ts';
import { randomBytes } from 'node:crypto';
import {
  claimedKeyId,
  hashApiKey,
  isStrongKey,
  mintApiKey,
  sameHash,
} from '../../../shared/apiKey.ts';

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

  test.each([
    'a'.repeat(64),
    'a'.repeat(256),
    'abc'.repeat(80),
    'password'.repeat(16),
    'abcdefghijklmnopqrstuvwxyz0123456789',
    'zyxwvutsrqponmlkjihgfedcba9876543210',
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
    expect(sameHash(hashApiKey(one), hashApiKey(one))).toBe(true);
    expect(sameHash(hashApiKey(one), hashApiKey(other))).toBe(false);
    expect(sameHash(hashApiKey(one), hashApiKey(one).slice(1))).toBe(false);
    expect(sameHash('', hashApiKey(one))).toBe(false);
  });
});
