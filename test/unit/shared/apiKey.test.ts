import { describe, expect, test } from '@jest/globals';
import { typeIds } from '../../../infra/ids/typeIds.ts';
import { claimedKeyId, hashApiKey, mintApiKey, sameHash } from '../../../shared/apiKey.ts';

const KEY_ID = /^key_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

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

  test('that the operator chose has an id of its own, always the same and of the usual shape, which tells nothing of the key', () => {
    const chosen = 'correct horse battery staple'.replaceAll(' ', '-');
    expect(claimedKeyId(chosen)).toBe(claimedKeyId(chosen));
    expect(claimedKeyId(chosen)).toMatch(KEY_ID);
    expect(claimedKeyId(`${chosen}!`)).not.toBe(claimedKeyId(chosen));
  });

  test.each([
    '',
    'x',
    `tl_key_01kahz0b2re5v8k2s4n6t8w0y2_${'0'.repeat(63)}`,
    `tl_key_01kahz0b2re5v8k2s4n6t8w0y2_${'0'.repeat(65)}`,
    `tl_key_X_${'0'.repeat(64)}`,
    `tl___proto___${'0'.repeat(64)}`,
  ])('that is not one of ours claims no id that was ever given out: %j', (key) => {
    expect(claimedKeyId(key)).toMatch(KEY_ID);
    expect(claimedKeyId(key)).not.toBe('key_01kahz0b2re5v8k2s4n6t8w0y2');
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
