import { expect, test } from '@jest/globals';
import { createKeyCheck } from '../../../../../../services/api/http/access/keyRevocation.ts';

/** A key that is revoked, and how often it was looked up. */
function revokedKey() {
  const seen = { lookups: 0 };
  const cachedRows = {
    findApiKey: async () => {
      seen.lookups += 1;
      return { revoked_at: '2026-01-01T00:00:00.000Z', expires_at: null };
    },
  };
  const api = { cachedRows, clock: { now: () => Date.parse('2026-01-02') } } as never;
  return { api, seen };
}

test('the first answer of a stream is checked, because its handler may have waited', async () => {
  const { api, seen } = revokedKey();
  expect(await createKeyCheck(api, { key_id: 'key_1' })()).toBe(false);
  expect(seen.lookups).toBe(1);
});

test('a key that was valid a moment ago is not looked up', async () => {
  const { api, seen } = revokedKey();
  expect(await createKeyCheck(api, { key_id: 'key_1' }, performance.now())()).toBe(true);
  expect(seen.lookups).toBe(0);
});

test('a chat token that has expired is refused at once, also between two checks of its key', async () => {
  const { api, seen } = revokedKey();
  const chat = { agent_id: 'agent_1', user_hmac: 'u', expires_at: Date.parse('2026-01-02') };
  const check = createKeyCheck(api, { key_id: 'key_1', chat }, performance.now());
  expect(await check()).toBe(false);
  expect(seen.lookups).toBe(0);
});
