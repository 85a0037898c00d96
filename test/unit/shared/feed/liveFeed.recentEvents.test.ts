import { expect, test } from '@jest/globals';
import type { LoggedEvent } from '../../../../shared/feed/loggedEvents.ts';
import { createRecentEvents } from '../../../../shared/feed/liveFeed.ts';
import { positionOf } from '../../../support/builders/history.ts';

const eventAt = (place: number, bytes = 10): LoggedEvent =>
  ({ stored: { position: positionOf(place) }, bytes }) as LoggedEvent;
const placesOf = (events: readonly LoggedEvent[] | undefined): number[] | undefined =>
  events?.map(({ stored }) => Number(stored.position));

test('has what came after a position, as long as nothing of that was let go of', () => {
  const recent = createRecentEvents(positionOf(10), { recentEvents: 3, recentBytes: 1_000 });
  expect(placesOf(recent.after(positionOf(10)))).toEqual([]);
  expect(recent.after(positionOf(9))).toBeUndefined();
  recent.add([eventAt(12), eventAt(14)]);
  expect(placesOf(recent.after(positionOf(10)))).toEqual([12, 14]);
  expect(placesOf(recent.after(positionOf(12)))).toEqual([14]);
  expect(placesOf(recent.after(positionOf(20)))).toEqual([]);
  recent.add([eventAt(15), eventAt(16)]);
  expect(recent.after(positionOf(11))).toBeUndefined();
  expect(placesOf(recent.after(positionOf(12)))).toEqual([14, 15, 16]);
});

test('holds no more bytes than it may', () => {
  const recent = createRecentEvents('', { recentEvents: 100, recentBytes: 25 });
  recent.add([eventAt(1), eventAt(2), eventAt(3)]);
  expect(recent.after('')).toBeUndefined();
  expect(placesOf(recent.after(positionOf(1)))).toEqual([2, 3]);
  expect(recent.usage()).toEqual({
    count: { limit: 100, used: 2 },
    bytes: { limit: 25, used: 20 },
  });
  recent.add([eventAt(4, 1_000)]);
  expect(placesOf(recent.after(positionOf(4)))).toEqual([]);
  expect(recent.usage()).toMatchObject({ count: { used: 0 }, bytes: { used: 0 } });
});
