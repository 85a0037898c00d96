import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { createRecentEventIds } from '../../../../../infra/eventstoredb/append/recentEventIds.ts';

/** Whether an event that was read at revision 3 is known when it is appended at revision 4. */
function isRemembered(id: string, stream: string): boolean {
  const recentEventIds = createRecentEventIds();
  recentEventIds.remember([{ id, stream, revision: 3 }]);
  return recentEventIds.existElsewhere(stream, 4, [{ id, type: 't', data: '{}', metadata: '{}' }]);
}

test('remembers where the events of Turnlog are', () => {
  expect(isRemembered(randomUUID(), 'session-s')).toBe(true);
});

test('does not hold ids and names of streams of any length', () => {
  expect(isRemembered('x'.repeat(1_000_000), 'session-s')).toBe(false);
  expect(isRemembered(randomUUID(), 'session-'.padEnd(1_000_000, 'x'))).toBe(false);
});
